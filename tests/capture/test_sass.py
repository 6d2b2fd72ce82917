"""Is what NVIDIA's code says of loads, lanes and the time of a step read right: by hand, and against slow counts?"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swizzle_sim.nvidia import waves
from swizzle_sim.nvidia.sass import Controlled, loading_loop, main_loop, unrolled, wavefronts, words_of_busiest
from tests import naive_waves

NONE = 7


def code(name, operands="", stall=1, sets=NONE, reads=NONE, waits=()):
    return Controlled(name, operands, stall, sets, reads, tuple(waits))


LOAD = code("LDG.E.128", "R4, desc[UR4][R2.64]", sets=0)
ADD, NEEDS_LOAD = code("FADD", "R1, R1, R1", stall=4), code("FADD", "R1, R4, R4", waits=(0,))
NOTHING = dict.fromkeys(("matrix", "operands", "fills", "late", "cycles"), 0)
NOTHING |= dict.fromkeys(("unit", "sets", "reads", "left", "copied"))


def test_a_wave_alone_takes_its_stalls_and_waits():
    assert waves.step_of([LOAD, NEEDS_LOAD, *[ADD] * 10], 1, 1, loads=1) == (1, 1 + 40, 16, 41 + 265 + 32)
    late = [code("SHFL.BFLY", sets=1), code("FADD", stall=4, waits=(1,))]  # its result is there after 3 more cycles
    assert waves.step_of([LOAD, NEEDS_LOAD, *late], 1, 1, loads=1).cycles == 1 + 3 + 24 + 4


def test_code_without_loops_takes_its_issue_and_its_waits_for_the_l1():
    once = [LOAD, NEEDS_LOAD, *[ADD] * 10]
    assert waves.once_of(once, 1, 1) == 15 + 45 + 1 + 40  # wavefronts of 16 B a lane, the latency, the code
    assert waves.once_of(once, 1, 4) < 40  # others issue while one waits


def test_waves_share_a_simd_and_its_units():
    loop = [LOAD, NEEDS_LOAD, *[code("FMNMX")] * 300]  # two cycles each
    alone, two = waves.step_of(loop, 1, 1, loads=1), waves.step_of(loop, 1, 2, loads=1)
    assert alone.busy == two.busy == 600
    assert alone.cycles <= two.cycles <= alone.cycles + 150  # to wait for the busiest unit is not counted here
    assert waves._mean([waves._op(one) for one in loop], 1, 2, 300) > 1200
    conflicts = code("STS", "[R1], R2")._replace(wavefronts=16)
    assert waves.step_of([LOAD, NEEDS_LOAD, *[conflicts] * 8], 1, 1, loads=1).busy == 8 * 16 * 4 + 16
    assert waves.step_of(loop, 2, 1, loads=1).busy == 1200
    products = [code("HGMMA.64x128x16.F32", "R24, gdesc[UR8], R24, gsb0"), code("WARPGROUP.DEPBAR.LE", " gsb0, 0x0")]
    assert waves.step_of([LOAD, NEEDS_LOAD, *products * 8], 1, 1, loads=1).busy == 8 * 64
    assert waves.step_of([LOAD, NEEDS_LOAD, code("BAR.SYNC", stall=3)], 2, 1, loads=1).cycles >= 20


PRODUCT = "HGMMA.64x64x16.F32.BF16"


def test_products_read_operands_from_shared_memory_that_others_use():
    """64 rows of A and 64 columns of B, 32 B each: 4 KiB in the 32 cycles that the product takes."""
    both, one = code(PRODUCT, "R24, gdesc[UR8], R24"), code("QGMMA.64x256x32.F32", "R24, R4, gdesc[UR8], R24")
    assert [waves._op(product).operands for product in (both, one, code("HMMA.16816"))] == [32, 64, 0]
    narrow = waves._op(code("HGMMA.64x16x16.F32", "R24, gdesc[UR8], R24"))
    assert narrow.matrix == narrow.operands == 20  # for which the matrix unit waits
    copies, stores = [code("LDGSTS.E.BYPASS.128", "[R7], [R8]")] * 8, [code("STS.128", "[R1], R2")] * 4
    last = [code(PRODUCT, "R24, gdesc[UR8], R24, gsb0"), code("WARPGROUP.DEPBAR.LE", " gsb0, 0x0")]
    assert waves.step_of([*copies, both, both, both, *last], 1, 4, loads=2).share == 8 * 16 + 4 * 32
    assert waves.step_of([*copies, both, both, both, *last], 1, 4, loads=2).busy == 8 * 16 + 4 * 32
    load, awaited = code("LDS", sets=0), code("FADD", waits=(0,))
    from_registers = [product._replace(operands=f"R24, R4,{product.operands[4:]}") for product in (both, last[0])]
    took = [
        waves._mean([waves._op(one) for one in (*[a_product] * 3, ends, *stores, load, awaited, last[1])], 1, 1, 0)
        for a_product, ends in ((both, last[0]), from_registers)
    ]
    assert took[0] > 4 * 32 + 4 * 16 + waves.LATENCY["LDS"] > took[1]  # nothing is left for the stores, or half
    wide = [code("HGMMA.64x256x16.F32", "R24, R4, gdesc[UR8], R24")] * 4  # half of the cycles are left
    assert waves._between_operands({"matrix": 128, "product": 128, "operands": 64}, 0, 60) == 120
    assert waves._between_operands({"matrix": 128, "product": 128, "operands": 64}, 0, 80) == 144
    assert waves.step_of([*wide, load], 1, 2, loads=1).busy == 4 * 128


def test_loads_that_are_waited_for_in_turn_are_bursts():
    other = code("LDG.E.128", sets=1)
    serial = [LOAD, NEEDS_LOAD, other, code("FADD", waits=(1,))]
    assert waves.step_of(serial, 1, 1, loads=2).bursts == 2
    assert waves.step_of([LOAD, other, NEEDS_LOAD, code("FADD", waits=(1,))], 1, 1, loads=2).bursts == 1
    assert waves.step_of(serial, 1, 1, loads=1).cycles > waves.L2  # of two waits one is no burst of the source
    assert waves.step_of(serial, 1, 1, loads=3).bursts == 1  # three loads do not come in two equal bursts


KINDS = ("FADD", "FMNMX", "MUFU.EX2", "SHFL.BFLY", "LDS", "STS.128", "S2R", "LDG.E.64", "BAR.SYNC", "HMMA.16816.F32",
    "HGMMA.64x64x16.F32", "HGMMA.64x256x16.F32", "WARPGROUP.DEPBAR.LE", "LDGSTS.E.BYPASS.128", "UTMALDG.2D",
    "DEPBAR.LE", "SYNCS.PHASECHK.TRANS64.TRYWAIT")  # fmt: skip


@st.composite
def instructions(draw):
    name = draw(st.sampled_from(KINDS))
    of_a = draw(st.sampled_from(("R1, gdesc[UR4], R1", "R1, R5, gdesc[UR4], R1")))
    operands = of_a + draw(st.sampled_from((", gsb0", ""))) if name.startswith("HGMMA") else ""
    if name.startswith("WARPGROUP"):
        operands = f"gsb0, 0x{draw(st.integers(0, 2))}"
    barrier = st.sampled_from((NONE, 0, 1, 2))
    waits = draw(st.sets(st.integers(0, 2), max_size=2))
    return code(name, operands, draw(st.integers(0, 15)), draw(barrier), draw(barrier), sorted(waits))


def naive(one):
    op = waves._op(one)
    return NOTHING | {
        "unit": None if op.unit == "none" else op.unit, "cycles": op.occupies, "fills": op.fills, "matrix": op.matrix,
        "operands": op.operands, "copies": one.kind == "LDGSTS",
        "late": waves.LATENCY.get(one.kind, waves.OTHERS), "stall": one.stall, "waits": one.waits,
        "sets": None if one.sets == NONE else one.sets, "reads": None if one.reads == NONE else one.reads,
        "ends": op.ends_group, "left": op.groups_left, "joins": op.is_barrier, "copied": op.copied,
        "awaits": op.awaits_copies,
    }  # fmt: skip


@given(
    st.lists(instructions(), min_size=1, max_size=8), st.integers(1, 3), st.integers(1, 3), st.integers(0, 50),
    st.sampled_from((0, 200)),
)  # fmt: skip
def test_waves_take_what_they_take_cycle_by_cycle(loop, per_workgroup, workgroups, apart, far):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(waves, "L2", 40)  # fewer cycles to go through
        found = waves._mean([waves._op(one) for one in loop], per_workgroup, workgroups, apart, far)
    assert found == naive_waves.mean_step([naive(one) for one in loop], per_workgroup, workgroups, apart, 40, far)


COPY, ARRIVED = code("LDGSTS.E.BYPASS.128", "[R7], [R8]"), code("DEPBAR.LE", "SB0, 0x0")


def test_what_stands_between_copies_and_the_next_ones():
    """What comes behind the copies is done while they are on their way, and what they take in is no code."""
    product = [code(PRODUCT, "R24, gdesc[UR8], R24, gsb0"), code("WARPGROUP.DEPBAR.LE", " gsb0, 0x0")]
    body = [ARRIVED, code("BAR.SYNC"), *product, *[ADD] * 5]
    first = waves.ahead_of([*body, COPY, COPY], 1)
    assert first == 1 + 20 + 1 + 32 + 1 + 5 * 4  # the barrier, the product, what the compiler writes
    assert waves.ahead_of([*body, COPY, COPY, *[ADD] * 50], 1) == first
    assert waves.ahead_of([*[ADD] * 50, *body, COPY, COPY], 1) == first
    apart = waves.ahead_of([*body, COPY, *[ADD] * 3, COPY, *[ADD] * 50], 1)
    assert first <= apart <= first + 13  # the SM takes the first in while the second waits to go out
    turned = [*[ADD] * 5, COPY, COPY, ARRIVED, code("BAR.SYNC"), *product]
    assert waves.ahead_of(turned, 1) == first
    scale = code("LDG.E", sets=0)  # from before the wait, used behind the copies: it hides nothing from turn to turn
    late = [scale, *body, COPY, COPY, NEEDS_LOAD]
    assert waves.ahead_of(late, 1) == first
    assert waves.ahead_of([COPY, ARRIVED], 4) == 4  # an instruction of each
    twice = [*body, COPY, *body, COPY]
    assert waves.ahead_of(twice, 1) == 2 * first and waves.ahead_of([*body, COPY, COPY], 2) > first
    other = [code("LDG.E", sets=1), code("DEPBAR.LE", "SB2, 0x1")]  # waits for loads, not for copies
    assert waves.ahead_of([*body, COPY, COPY, *other], 1) == first
    tiles = [code("SYNCS.PHASECHK.TRANS64.TRYWAIT"), *product, code("UTMALDG.2D"), *[ADD] * 9]
    assert waves.ahead_of(tiles, 1) == 1 + 32 + 1
    assert waves.ahead_of(body, 1) == waves.ahead_of([*product, COPY], 1) == 0  # nothing is copied, or waited for


HEX = """
        /*0000*/                   LDC R1, c[0x0][0x28] ;                      /* 0x00000a00ff017b82 */
                                                                               /* 0x000e220000000800 */
.L_x_0:
        /*0010*/                   LDG.E.128 R20, desc[UR60][R152.64] ;        /* 0x0000003c98147981 */
                                                                               /* 0x000ea2000c1e1d00 */
        /*0020*/                   STS.128 [R2+0x8800], R20 ;                  /* 0x0088001402007388 */
                                                                               /* 0x0041e80000000c00 */
        /*0030*/              @!P5 BRA `(.L_x_0) ;                             /* 0x000000000010d947 */
                                                                               /* 0x000fea0003800000 */
"""


def test_what_the_compiler_tells_a_wave_is_read_from_its_words():
    load, store, back = loading_loop(HEX)
    assert (load.name, load.stall, load.sets, load.reads, load.waits) == ("LDG.E.128", 1, 2, NONE, ())
    assert (store.kind, store.stall, store.sets, store.reads, store.waits) == ("STS", 4, NONE, 0, (2,))
    assert back.kind == "BRA" and loading_loop(HEX.replace("LDG.E.128", "IADD3")) == []


PTX = """
    @%p9 ld.global.b32 { %r1 }, [ %rd1 + 0 ];
$L__BB0_2:                              // %.lr.ph
$L__BB0_3:
    @%p1 ld.global.v4.b32 { %r1, %r2, %r3, %r4 }, [ %rd1 + 0 ];
    @%p2 bra    $L__BB0_3;
    @%p2 ld.global.b32 { %r5 }, [ %rd2 + 0 ];
    bra.uni     $L__BB0_2;
$L__BB0_4:
    @%p3 bra    $L__BB0_5;
$L__BB0_5:
"""


def test_a_loop_that_the_assembler_unrolled_does_several_steps_a_turn():
    loads = [code("LDG.E.128", sets=0)] * 4
    assert unrolled(PTX, loads) == 4 and unrolled(PTX, [*loads, *loads, ADD]) == 8
    inner = "$L__BB0_3:\n    @%p1 ld.global.v4.b32 { %r1, %r2, %r3, %r4 }, [ %rd1 + 0 ];\n    @%p2 bra    $L__BB0_3;\n"
    other = PTX.replace(inner, "    ld.global.b32 { %r6 }, [ %rd3 + 0 ];\n    ld.global.b32 { %r7 }, [ %rd4 + 0 ];\n")
    assert unrolled(other, loads) == 1  # three do not come in four
    assert unrolled("", loads) == 1 and unrolled(other, loads[:3]) == 1 and unrolled(other, loads * 3) == 4


# ---- Where do the lanes of a wave meet: by hand, against a count bank by bank, and in what a compiler writes?
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


# ---- Is what begins or ends a tile left out of a step, where loops over tiles and steps are one?
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
