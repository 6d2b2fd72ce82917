"""Is every choice of sizes tried past its own period, at the cost of one candidate, and proved with few proofs?"""

from itertools import product

import pytest

from swizzle_sim.language import Grid, Swizzle, parse_form
from swizzle_sim.testing import BijectionError, assert_bijective
from swizzle_sim.testing.directive import Options
from swizzle_sim.testing.refuting import XCDS, grids, launches_of_choices, sized, sizes_of_quotients, with_xcds
from swizzle_sim.testing.run import check_file
from swizzle_sim.testing.settle import _subsets, settle_verdict

VALUES = (1, 2, 4, 8, 16, 32, 64)
FORM = parse_form(
    "span = num_xcds * CHUNK\npid = pid % span\n"
    "pid_m = pid // (GROUP * num_pid_n)\npid_n = pid % num_pid_n * (num_pid_m // num_pid_m)"
)
KERNEL = """
# swizzle: CHUNK=8,64 GROUP_M=8
@triton.jit
def gemm(a, c, M, N, NUM_XCDS, BLOCK_M, BLOCK_N, GROUP_M: tl.constexpr, CHUNK: tl.constexpr):
    pid = tl.program_id(0)
    rows, cols = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    span = NUM_XCDS * CHUNK
    if pid < rows * cols // span * span:
        at = pid // NUM_XCDS
        pid = at // CHUNK * span + pid % NUM_XCDS * {stride} + at % CHUNK
    first = pid // (GROUP_M * cols) * GROUP_M
    size = min(rows - first, GROUP_M)
    pid_m = first + pid % (GROUP_M * cols) % size
    pid_n = pid % (GROUP_M * cols) // size
    tl.store(c + pid_m * N + pid_n, tl.load(a + pid_n))
"""


def test_each_choice_has_launches_past_its_period_and_all_have_a_bound():
    choices = [{"CHUNK": chunk, "GROUP": group} for chunk, group in product(VALUES, VALUES)]
    found = list(launches_of_choices(FORM, "tiles", choices, XCDS, 5_000_000, lambda grid, count: True))
    for choice in choices:
        largest = max(grid.num_pids for grid, _, sizes in found if sizes == choice)
        assert largest > 8 * choice["CHUNK"]
    assert sum(grid.num_pids for grid, _, _ in found) <= 5_000_000
    assert len(found) <= 5_000_000 // 350
    assert {count for _, count, _ in found} >= set(XCDS)


def test_sizes_give_the_counts_of_the_launch():
    sides = sizes_of_quotients("tl.cdiv(M, BM) * tl.cdiv(N, BN)", Options(sizes={"BN": 32, "GROUP": 4}))
    assert sides == (("M", "BM"), ("N", "BN"))
    grid, count, sizes = sized((Grid((15,), (3, 5)), 8, {"BN": 32}), sides, ("M", "N", "BM", "BN"))
    assert (grid.shape, count) == ((3, 5), 8)
    assert (-(-sizes["M"] // sizes["BM"]), -(-sizes["N"] // sizes["BN"])) == (3, 5)
    assert sizes["M"] % sizes["BM"] and sizes["N"] % sizes["BN"]
    for launch, given in (("cdiv(M, BM) * cdiv(M, BN)", {}), ("cdiv(M, BM) * cdiv(N, BN)", {"M": 64}), ("M", {})):
        assert sizes_of_quotients(launch, Options(sizes=given)) is None


@pytest.mark.parametrize(("stride", "status"), [("CHUNK", "proved"), ("min(CHUNK, 32)", "refuted")])
@pytest.mark.usefixtures("without_conditions")
def test_a_kernel_with_two_sizes_is_proved_or_refuted_past_512_tiles(written, stride, status):
    (found,) = check_file(written(KERNEL.format(stride=stride)))
    assert found.verdict == status, found.message


def test_few_choices_are_proved_first():
    several = {"CHUNK": VALUES, "GROUP": VALUES, "FLAG": (0, 1), "WIDE": VALUES}
    found = _subsets(several)
    assert found[:2] == [(), ("FLAG",)]
    assert ("CHUNK", "GROUP") in found
    assert ("CHUNK", "GROUP", "FLAG") not in found


def test_few_launches_meet_every_count_of_xcds():
    found = list(with_xcds(grids(parse_form("pid = pid % num_xcds"), "line")))
    assert {count for _, count in found} == set(range(1, 65))
    assert len(found) < 2000
    with pytest.raises(BijectionError, match="24 XCDs"):
        assert_bijective("if num_xcds ^ 24 == 0:\n    pid = 1\n")


def test_a_corrected_condition_keeps_what_it_was_found_within():
    text = (
        "group = min(8, num_pid_n)\nfirst = pid // (group * num_pid_m) * group\nlength = min(num_xcds - first, group)\n"
        "step = pid % (group * num_pid_m)\npid_n = first + step % length\npid_m = step // length\n"
    )
    swizzle, grid = Swizzle.parse(text), Grid((96,), (12, 8))
    verdict = settle_verdict(swizzle.verify(grid, 8), swizzle, grid, 8)
    assert verdict.domain == "(num_pid_n <= num_xcds) and (num_pid_n <= 8)"
