"""Is what begins or ends a tile left out of a step, where loops over tiles and steps are one?"""

import pytest

from swizzle_sim.nvidia.sass import main_loop

LINE = "        /*{:04x}*/                   {} ;"


def disassembled(*lines):
    """Labels, and instructions one after the other."""
    text, at = [], 0
    for line in lines:
        if line.endswith(":"):
            text.append(line)
        else:
            text.append(LINE.format(at, line))
            at += 16
    return "\n".join(text)


def loop(*jumped):
    return disassembled(
        ".L_x_0:", "LDGSTS.E.BYPASS.128 [R1], [R2]", "@P0 BRA `(.L_x_1)", *jumped, ".L_x_1:",
        "HGMMA.64x128x16.F32 R24, gdesc[UR4], R24", "IADD3 R0, R0, 0x1, RZ", "@P1 BRA `(.L_x_0)",
    )  # fmt: skip


@pytest.mark.parametrize("of_tile", ["STG.E.128 [R4], R8", "I2F.RP R5, R6"])
def test_what_stores_or_divides_behind_a_branch_is_no_part_of_a_step(of_tile):
    assert main_loop(loop("FMUL R3, R3, R3", of_tile))["step_instructions"] == 3


def test_anything_else_behind_a_branch_is():
    assert main_loop(loop("FMUL R3, R3, R3", "FMUL R4, R4, R4"))["step_instructions"] == 5
    assert main_loop(loop("LDGSTS.E.BYPASS.128 [R1], [R2]", "STG.E.128 [R4], R8"))["step_instructions"] == 4
