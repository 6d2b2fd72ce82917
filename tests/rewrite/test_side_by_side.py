"""Does the rewritten kernel compute what the original does, and does the check notice when it does not?"""

from dataclasses import replace

import numpy as np
import pytest

from swizzle_sim.capture.workload import Workload, of_kernel, workload
from swizzle_sim.language import Grid, Swizzle, family
from swizzle_sim.rewrite import check_rewritten, rewrite_kernel, rewrite_workload
from swizzle_sim.rewrite.check import compare_interpreted, run_side_by_side
from swizzle_sim.rewrite.small_sizes import small_workloads
from swizzle_sim.workload.kernels import kernel
from tests.capture.same_trace import needs_triton
from tests.rewrite import workloads
from xcd_model.errors import CaptureError, RewriteError, SizeError

pytestmark = needs_triton


def rewritten(work, spec, **options):
    return rewrite_kernel(
        work.launch, Swizzle.parse(family(spec)), grid=work.grid, num_xcds=8, sizes=work.problem, **options
    )


def test_gemm_is_checked_at_small_ragged_sizes_and_compiled(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    gemm = workload("gemm", {"M": 1024, "N": 1024, "K": 128, "BLOCK_M": 128, "BLOCK_N": 128})
    found = rewritten(gemm, "contiguous+group_m(size=3)", lattice=gemm.others)
    checked = check_rewritten(found, gemm, "gfx942")
    programs = [case.programs for case in checked.cases if case.whole]
    assert any(n > 8 and n % 8 for n in programs) and any(n % 8 == 0 for n in programs) and any(n < 8 for n in programs)
    assert all(case.moved > 0 for case in checked.cases if case.programs > 8)
    assert any(case.sizes["M"] % case.sizes["BLOCK_M"] for case in checked.cases)
    assert not any(case.unwritten for case in checked.cases)
    (sampled,) = [case for case in checked.cases if not case.whole]
    assert sampled.sizes["M"] == 1024 and sampled.moved > 0
    assert checked.before.vgprs == checked.after.vgprs == 128
    assert checked.before.sgprs <= checked.after.sgprs <= checked.before.sgprs + 16


def test_where_no_size_can_be_run_whole_programs_of_the_target_are_compared_and_that_is_said(monkeypatch):
    monkeypatch.setattr("swizzle_sim.rewrite.check.small_workloads", lambda *_: [])
    gemm = workload("gemm", {"M": 512, "N": 512, "K": 64, "BLOCK_M": 64, "BLOCK_N": 64})
    found = rewritten(gemm, "contiguous+group_m(size=3)", lattice=gemm.others)
    checked = check_rewritten(found, gemm, "gfx942")
    assert [(case.programs, case.whole) for case in checked.cases] == [(16, False)] and checked.cases[0].moved > 0
    assert checked.words.startswith("no size is small enough to run whole: 16 programs")
    broken = replace(found, text=rewritten(gemm, "reverse", lattice=gemm.others).text, constexpr="")
    with pytest.raises(RewriteError, match="computes otherwise"):
        check_rewritten(broken, gemm, "gfx942")


def test_a_length_read_without_a_mask_stays_even_at_every_kind_of_grid():
    """As of distances between vectors of D items: every small grid that is known cuts D below its block."""

    def at(sizes):
        tiles = (-(-sizes["M"] // 16), -(-sizes["N"] // 16))
        launch = replace(workloads.add_2d().launch, constexprs={"BLOCK_D": 16})
        grid = Grid((tiles[0] * tiles[1],), tiles)
        return Workload(name="distances", problem=sizes, grid=grid, launch=launch, others=others, at=at)

    others: list = []
    cuts = ((375, 375, 32), (75, 75, 6), (46, 46, 4), (23, 23, 2), (1, 375, 32), (375, 1, 32))
    others = [(at(sizes).grid, sizes) for sizes in (dict(zip("MND", cut, strict=True)) for cut in cuts)]
    found = small_workloads(at({"M": 375, "N": 375, "D": 32}), 8)
    assert {kind for kind, one in found if one.problem["D"] % 16 == 0} == {kind for kind, _ in found}
    assert [kind for kind, _ in found] == ["off a multiple"] * 2 + ["on a multiple"] + ["few"] * 2


def test_sizes_are_halved_where_no_known_grid_keeps_whole_chunks_and_constants_keep_their_blocks():
    """As of chunks of 256 tokens without a mask: of the known small grids each has a chunk that is cut."""

    def at(sizes):
        chunks = sizes["TOKENS"] // 256
        if not chunks:
            raise SizeError("no chunk")
        constants = {"L": 256, "CHUNKS": chunks, "K": sizes["K"], "BLOCK_K": 64}
        grid = (chunks * sizes["BATCH"] * 16,)
        launch = replace(workloads.add_2d().launch, constexprs=constants, grid=grid)
        return Workload(name="chunks", problem=sizes, grid=Grid(grid), launch=launch, others=others, at=at)

    others: list = []
    others = [
        (Grid((16,)), {"BATCH": 1, "TOKENS": 511, "K": 128}),
        (Grid((32,)), {"BATCH": 1, "TOKENS": 767, "K": 128}),
    ]
    found = [one for _, one in small_workloads(at({"BATCH": 2, "TOKENS": 4096, "K": 1024}), 8)]
    assert any(one.problem["TOKENS"] % 256 for one in found)
    assert any(one.problem["TOKENS"] % 256 == 0 and one.grid.num_pids > 8 for one in found)
    assert all(one.problem["K"] % 64 == 0 and one.problem["K"] < 1024 for one in found)


def test_a_block_is_of_the_size_that_it_is_named_for():
    """As of a depthwise convolution without a mask on C: 16 images are not in blocks of BLOCK_W = 16."""

    def at(sizes):
        constants = {"TAPS": 5, "BLOCK_H": 4, "BW": 16, "BLOCK_C": 64}
        grid = (-(-sizes["H"] // 4) * -(-sizes["W"] // 16), -(-sizes["C"] // 64), sizes["N"])
        launch = replace(workloads.add_2d().launch, constexprs=constants, grid=grid)
        return Workload(name="dwconv", problem=sizes, grid=Grid(grid), launch=launch, others=others, at=at)

    others: list = []
    others = [(Grid((14, 1, 3)), {"N": 3, "H": 25, "W": 25, "C": 51})]
    found = [one for _, one in small_workloads(at({"N": 16, "H": 128, "W": 128, "C": 256}), 1)]
    whole = [one for one in found if one.problem["C"] % 64 == one.problem["W"] % 16 == one.problem["H"] % 4 == 0]
    assert whole and all(one.grid.num_pids <= 48 for one in whole)


@pytest.mark.parametrize(
    ("name", "spec", "at"),
    [
        ("add_2d", "contiguous+group_m(size=2)", "program"),
        ("copy_3d", "contiguous", "program"),
        ("persistent", "contiguous+group_m(size=3)", "tile"),
        ("rows_while", "chunked(chunk=2)", "tile"),
        ("behind", "chunked(chunk=2)", "tile"),
        ("behind_handed", "chunked(chunk=2)", "tile"),
        ("flat", "chunked(chunk=2)", "tile"),
        ("flat_last", "chunked(chunk=2)", "tile"),
        ("fill", "contiguous", "program"),
        ("histogram", "contiguous", "program"),
    ],
)
def test_outputs_are_equal_bit_for_bit(name, spec, at):
    work = getattr(workloads, name)()
    found = rewritten(work, spec)
    assert found.at == at
    (case,) = run_side_by_side(found, [(work, None, "whole")])
    assert case.moved > 0 and case.whole and not case.unwritten and not case.races  # sums by atomics are rounded


def test_claimed_tiles_leave_the_same_memory_and_lost_ones_do_not():
    work = of_kernel(kernel("gemm_dynamic", M=150, N=70, K=33, BLOCK_M=32, BLOCK_N=32, BLOCK_K=16, PROGRAMS=9))
    found = rewrite_workload(work, Swizzle.parse(family("contiguous+group_m(size=2)")), num_xcds=8)
    (case,) = run_side_by_side(found, [(work, None, "whole")])
    assert case.moved > 0 and case.whole and not case.unwritten
    lost = found.text.replace(b"swizzled_tile = swizzle(tile,", b"swizzled_tile = swizzle(tile // 2,")
    with pytest.raises(RewriteError, match="c_ptr differs"):
        run_side_by_side(replace(found, text=lost), [(work, None, "whole")])


@pytest.mark.parametrize("wrong", [(b" m and not", b" m or not"), (b" and not cols", b" and cols")])
def test_blocks_are_joined_as_the_compiler_joins_them(wrong):
    work = workloads.fill()
    found = rewritten(work, "contiguous")
    with pytest.raises(RewriteError):
        run_side_by_side(replace(found, text=found.text.replace(*wrong)), [(work, None, "whole")])


def test_a_kernel_that_computes_otherwise_is_noticed():
    work = workloads.copy_3d()
    found = rewritten(work, "contiguous")
    text = found.text.decode()
    lost = text.replace("if swizzled_pid_z < nz:", "if swizzled_pid_z < nz - 1:")
    asleep = text.replace("        NUM_XCDS,\n    )", "        1,\n    )")  # a permutation, but not the one asked for
    assert lost != text != asleep
    for broken, words in ((lost, "y_ptr differs in 120 of 600 items"), (asleep, "does not compute tile")):
        with pytest.raises(RewriteError, match=words):
            run_side_by_side(replace(found, text=broken.encode()), [(work, None, "whole")])


def test_inputs_of_another_shape_are_named_with_the_sizes_tried():
    work = workloads.add_2d()
    work = replace(work, launch=replace(work.launch, make_inputs=lambda seed: {"x_ptr": np.zeros((4, 4))}))
    says = r"x_ptr: make_inputs gives shape \(4, 4\), declared is \(23, 70\); the check runs at height=23, width=70"
    with pytest.raises(CaptureError, match=says):
        run_side_by_side(rewritten(work, "contiguous"), [(work, None, "whole")])


def test_a_kernel_that_raises_is_named():
    work = workloads.histogram()
    found = rewritten(work, "contiguous")
    broken = found.text.replace(b"items % 3", b"items % undefined")
    with pytest.raises(RewriteError, match=r"kernels_triton.py: the kernel does not run.*undefined"):
        run_side_by_side(replace(found, text=broken), [(work, None, "whole")])


SQUARE = """
import triton
import triton.language as tl

from swizzle_sim.capture import Array, Kernel


@triton.jit
def fill(c, batch, features, BB: tl.constexpr, BF: tl.constexpr):
    pid = tl.program_id(0)
    across = tl.cdiv(features, BF)
    down = tl.cdiv(batch, BB)
    size = min(down - pid // (4 * across) * 4, 4)
    row = pid // (4 * across) * 4 + pid % size
    column = pid % (4 * across) // size
    rows, columns = row * BB + tl.arange(0, BB), column * BF + tl.arange(0, BF)
    inside = (rows < batch)[:, None] & (columns < features)[None, :]
    tl.store(c + rows[:, None] * features + columns[None, :], tl.zeros((BB, BF), tl.float32) + pid, inside)


kernel = Kernel(
    fill,
    sizes={"ROWS": 512, "COLUMNS": 512},
    arguments=lambda s: {
        "c": Array(shape=(s.ROWS, s.COLUMNS), dtype="fp32", role="out"), "batch": s.ROWS, "features": s.COLUMNS,
    },
    constexprs=lambda s: {"BB": 32, "BF": 32},
    grid=lambda s: (triton.cdiv(s.ROWS, 32) * triton.cdiv(s.COLUMNS, 32),),
    tiles=lambda s: (triton.cdiv(s.ROWS, 32), triton.cdiv(s.COLUMNS, 32)),
)
"""


def test_counts_that_are_equal_here_are_told_apart_by_what_parameters_are_at_other_sizes(tmp_path):
    (tmp_path / "square.py").write_text(SQUARE)
    work = workload(str(tmp_path / "square.py"), {})
    assert all(sizes.parameters["batch"] == sizes["ROWS"] for _, sizes in work.others)
    found = rewrite_workload(work, Swizzle.parse(family("contiguous+row")), num_xcds=8)
    (call,) = [line for line in found.text.decode().splitlines() if "swizzle(tl.program_id(0)" in line]
    assert "tl.cdiv(features, BF)" in call and "batch" not in call


@pytest.mark.parametrize(("name", "races"), [("fdtd_2d", True), ("transpose", False)])
def test_a_kernel_whose_outputs_depend_on_the_order_of_its_programs_is_said_to(name, races):
    work = of_kernel(kernel(name, **({"Nx": 96, "Ny": 96} if races else {"M": 96, "N": 96})))
    (case,) = run_side_by_side(rewritten(work, "reverse"), [(work, None, "whole")])
    assert (case.whole, case.races) == (True, races)


def test_a_constant_that_the_kernel_asserts_to_be_long_stays_long(tmp_path):
    asserting = SQUARE.replace(
        "BF: tl.constexpr):\n", "BF: tl.constexpr, K: tl.constexpr):\n    tl.static_assert(K >= 256)\n"
    )
    asserting = asserting.replace('"BF": 32}', '"BF": 32, "K": s.K}').replace(
        '"COLUMNS": 512}', '"COLUMNS": 512, "K": 512}'
    )
    (tmp_path / "asserting.py").write_text(asserting)
    work = workload(str(tmp_path / "asserting.py"), {})
    found = rewrite_workload(work, Swizzle.parse(family("contiguous+row")), num_xcds=8)
    assert {case.sizes["K"] for case in compare_interpreted(found, work) if case.whole} == {512}
