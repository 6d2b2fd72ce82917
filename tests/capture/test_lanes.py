"""Where do the lanes of a wave meet: by hand, against a count bank by bank, and in what a compiler writes?"""

from hypothesis import given
from hypothesis import strategies as st

from swizzle_sim.nvidia.sass import wavefronts, words_of_busiest

TID = ("S2R", "R0, SR_TID.X", False)


def met(*code):
    return wavefronts(
        [TID, *((name, operands, skipped) for name, operands, *rest in code for skipped in [bool(rest)])]
    )[-1]


def test_addresses_are_followed_through_integer_arithmetic():
    assert met(("LEA", "R1, R0, 0x400, 0x2"), ("LDS", "R2, [R1]")) == 1  # neighbours
    assert met(("LEA", "R1, R0, RZ, 0x7"), ("STS", "[R1+0x10], R2")) == 32  # 128 bytes apart: all on one bank
    assert met(("LOP3.LUT", "R1, R0, 0xf, RZ, 0xc0, !PT"), ("LEA", "R1, R1, RZ, 0x7"), ("LDS", "R2, [R1]")) == 16
    assert met(("SHF.R.U32.HI", "R1, RZ, 0x4, R0"), ("LDS", "R2, [R1]")) == 1  # all lanes of one word
    assert met(("IMAD.SHL.U32", "R1, R0, 0x10, RZ"), ("STS.128", "[R1], R4")) == 4
    assert met(("SHF.L.U32", "R1, R0, 0x5, RZ"), ("SGXT.U32", "R1, R1, 0x8"), ("LDS", "R2, [R1]")) == 2
    assert met(("IADD3", "R1, -R0, 0x1f, RZ"), ("IMAD", "R1, R1, 0x8, RZ"), ("LDS.64", "R2, [R1]")) == 2
    assert (
        met(("UMOV", "UR4, 0x400"), ("S2UR", "UR5, SR_CgaCtaId"), ("ULEA", "UR4, UR5, UR4, 0x18"), ("LDS", "R2, [UR4]"))
        == 1
    )
    assert met(("CS2R", "R2, SRZ"), ("LEA", "R3, P0, R0, R3, 0x7"), ("LDS", "R2, [R3]")) == 32


def test_what_nobody_knows_has_no_conflicts():
    for name, operands in (
        ("LDC", "R1, c[0x0][0x28]"), ("LDG.E", "R1, desc[UR4][R2.64]"), ("SEL", "R1, R0, RZ, P0"),
        ("IMAD.HI", "R1, R0, 0x3, RZ"), ("SHF.R.S32.HI", "R1, RZ, 0x1, R0"), ("S2R", "R1, SR_CTAID.X"),
        ("MOV", "R1, |R0|"), ("MOV", "R1, R0, R0"),
    ):  # fmt: skip
        assert met((name, operands), ("LDS", "R2, [R1]")) is None, name
    assert met(("MOV", "R1, R0", "skipped"), ("LDS", "R2, [R1]")) is None  # by a predicate
    assert met(("MOV", "R3, R0"), ("LDG.E.128", "R1, desc[UR4][R8.64]"), ("LDS", "R2, [R3]")) is None  # overwritten
    assert met(("MOV", "R5, R0"), ("LDG.E.128", "R1, desc[UR4][R8.64]"), ("LDS", "R2, [R5]")) is not None
    assert met(("IADD3", "R1, R0, 0x1, RZ")) is None and met(("LDS", "R2, desc[UR4]")) is None


@given(st.integers(0, 255), st.integers(0, 255), st.integers(0, 255), st.integers(0, 255))
def test_tables_of_three_bits(a, b, c, table):
    wanted = sum((table >> ((a >> bit & 1) * 4 + (b >> bit & 1) * 2 + (c >> bit & 1)) & 1) << bit for bit in range(32))
    code = [("MOV", f"R{at}, {value:#x}", False) for at, value in ((1, a), (2, b), (3, c))]
    code += [("LOP3.LUT", f"R4, R1, R2, R3, {table:#x}, !PT", False), ("IADD3", f"R4, R4, -{wanted:#x}, RZ", False)]
    code += [TID, ("IMAD", "R5, R4, R0, RZ", False), ("LDS", "R6, [R5]", False)]  # all at zero, if it is as wanted
    assert wavefronts(code)[-1] == 1


@given(st.lists(st.integers(0, 4095), min_size=32, max_size=32), st.sampled_from((4, 8, 16)))
def test_wavefronts_are_the_words_of_the_busiest_bank(places, width):
    addresses, lanes, count = [place * width for place in places], 128 // width, 0
    for first in range(0, 32, lanes):
        words = {byte // 4 for at in addresses[first : first + lanes] for byte in range(at, at + width)}
        count += max(sum(word % 32 == bank for word in words) for bank in range(32))
    assert words_of_busiest(addresses, width) == count
