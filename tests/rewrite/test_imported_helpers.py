"""Are helpers that a kernel imports handed the remapped ids, in copies of their own, and is the result the same?"""

import numpy as np
import pytest

from swizzle_sim.capture.workload import Workload
from swizzle_sim.language import Grid, Swizzle, family
from swizzle_sim.rewrite import rewrite_kernel
from swizzle_sim.rewrite.check import run_side_by_side
from swizzle_sim.rewrite.imported_helpers import with_own_helpers
from swizzle_sim.rewrite.small_sizes import LAST_RESORT, MAX_PROGRAMS, small_workloads
from swizzle_sim.workload.launch import Array, Launch
from tests.capture.same_trace import needs_triton
from xcd_model.errors import RewriteError, SizeError

IDS = '''import triton
import triton.language as tl

STEP: tl.constexpr = tl.constexpr(1)


@triton.jit
def inner(axis: tl.constexpr = 0):
    return tl.program_id(0)  # of the launch


if True:
    @triton.jit
    def unflatten(X: tl.constexpr):
        """Column and row."""
        pid = inner() * STEP
        return pid % X, pid // X


@triton.jit
def harmless(x):
    return x + 1


class Schedule:
    @triton.jit
    def first(self):
        return tl.program_id(0)
'''
KERNEL = """import triton
import triton.language as tl
from triton.language.extra.libdevice import rsqrt

from pack import ids
from pack.ids import harmless, unflatten

STEP = "of this file"


@triton.jit
def other(y_ptr):
    column, row = unflatten(2)
    tl.store(y_ptr, column + row)


@triton.jit
def k(x_ptr, y_ptr, X: tl.constexpr):
    column, row = unflatten(X)
    at = row * X + column + (ids.inner() - row * X - column) * 0 + tl.arange(0, 1)
    tl.store(y_ptr + at, rsqrt(tl.load(x_ptr + at)) + harmless(0))
"""


@pytest.fixture
def path(tmp_path):
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack" / "__init__.py").write_text("")
    (tmp_path / "pack" / "ids.py").write_text(IDS)
    (tmp_path / "pack" / "copy.py").write_text("import nobody_has_this\n")  # must not hide the standard library's
    (tmp_path / "pack" / "kernel.py").write_text(KERNEL)
    return tmp_path / "pack" / "kernel.py"


def test_helpers_that_read_an_id_are_copied_and_others_are_not(path):
    text = with_own_helpers(path, path.read_bytes(), "k").decode()
    assert "column, row = unflatten_1(X)" in text and "(inner_1() - row" in text and "harmless(0)" in text
    assert "from pack.ids import STEP as STEP_1\n" in text and "pid = inner_1() * STEP_1\n" in text
    assert text.count("def inner_1(axis: tl.constexpr = 0):") == 1 and "def harmless" not in text
    assert "    column, row = unflatten(2)\n" in text, "another kernel of the file stays as it was"
    assert with_own_helpers(path, path.read_bytes(), "other") != path.read_bytes()
    assert (path.parent / "ids.py").read_text() == IDS


def test_a_method_that_reads_an_id_is_refused_by_its_line(path):
    path.write_text(KERNEL.replace("ids.inner()", "ids.Schedule.first(0)"))
    with pytest.raises(RewriteError, match=r"kernel.py:20: Schedule.first of ids.py calls tl.program_id and is no"):
        with_own_helpers(path, path.read_bytes(), "k")


@needs_triton
def test_both_kernels_compute_the_same_with_the_device_library_too(path):
    grid = (21,)
    launch = Launch(
        path=path,
        function="k",
        arguments={"x_ptr": Array(shape=(21,), dtype="fp32"), "y_ptr": Array(shape=(21,), dtype="fp32", role="out")},
        constexprs={"X": 3},
        grid=grid,
        sliced_for="gfx942",
        make_inputs=lambda seed: {"x_ptr": np.arange(1, 22, dtype=np.float32)},
    )
    found = rewrite_kernel(launch, Swizzle.parse(family("contiguous")), grid=Grid(grid), num_xcds=8, sizes={})
    assert b"column, row = unflatten_1(swizzled_pid, X)" in found.text
    assert b"pid = inner_1(swizzled_pid) * STEP_1" in found.text
    work = Workload(name="k", problem={}, grid=Grid(grid), launch=launch, others=(), at=None)
    (case,) = run_side_by_side(found, [(work, None, "off a multiple")])
    assert case.whole and case.moved > 8 and not case.unwritten


@needs_triton
def test_an_id_of_a_given_axis_is_read_where_the_helper_is_called(path):
    """As flag-gems does in hundreds of places; with an axis that is not said here the call is refused as before."""
    (path.parent / "ids.py").write_text(
        "import triton\nimport triton.language as language\n\n\n@triton.jit\ndef id_of(axis: int) -> language.tensor:\n"
        '    """Wide."""\n    return language.program_id(axis).to(language.int64)\n'
    )
    body = "at = id_of(axis=1) * 4 + ids.id_of(0)\n    tl.store(y_ptr + at, tl.load(x_ptr + at))\n"
    path.write_text(
        "import triton\nimport triton.language as tl\n\nfrom pack import ids\nfrom pack.ids import id_of\n\n\n"
        f"@triton.jit\ndef k(x_ptr, y_ptr):\n    {body}"
    )
    arrays = {"x_ptr": Array(shape=(20,), dtype="fp32"), "y_ptr": Array(shape=(20,), dtype="fp32", role="out")}
    made = lambda seed: {"x_ptr": np.arange(20, dtype=np.float32)}  # noqa: E731
    launch = Launch(
        path=path, function="k", arguments=arrays, constexprs={}, grid=(4, 5), sliced_for="gfx942", make_inputs=made
    )
    found = rewrite_kernel(launch, Swizzle.parse(family("contiguous")), grid=Grid((4, 5)), num_xcds=8, sizes={})
    assert b"at = swizzled_pid_y.to(tl.int64) * 4 + swizzled_pid_x.to(tl.int64)" in found.text
    work = Workload(name="k", problem={}, grid=Grid((4, 5)), launch=launch, others=(), at=None)
    (case,) = run_side_by_side(found, [(work, None, "off a multiple")])
    assert case.whole and case.moved > 8 and not case.unwritten
    kernel = path.read_text().partition("@triton.jit")[2]
    path.write_text(
        (path.parent / "ids.py").read_text()
        + f"\n\nids, tl = None, language\n\n\n@triton.jit{kernel}".replace("ids.id", "id")
    )
    alone = rewrite_kernel(launch, Swizzle.parse(family("contiguous")), grid=Grid((4, 5)), num_xcds=8, sizes={})
    assert b"at = swizzled_pid_y.to(language.int64) * 4 + swizzled_pid_x.to(language.int64)" in alone.text
    path.write_text(path.read_text().replace("id_of(axis=1)", "id_of(tl.constexpr(1))"))
    with pytest.raises(RewriteError, match="only a literal axis"):
        rewrite_kernel(launch, Swizzle.parse(family("contiguous")), grid=Grid((4, 5)), num_xcds=8, sizes={})


@pytest.mark.parametrize(("fewest", "runs"), [(64, 64), (LAST_RESORT + 8, None), (24, 48)])
def test_a_kernel_of_no_small_grid_is_run_at_its_smallest(fewest, runs):
    def at(sizes):
        if sizes["N"] < fewest:
            raise SizeError("too few")
        launch = Launch(path="k.py", function="k", arguments={}, constexprs={}, grid=(sizes["N"],))
        return Workload(name="k", problem=sizes, grid=Grid(launch.grid), launch=launch, others=others, at=at)

    others: list = []
    others = [(Grid((n,)), {"N": n}) for n in (fewest, 2 * fewest, 512)]
    found = [one.grid.num_pids for _, one in small_workloads(at({"N": 512}), 8)]
    assert (runs in found and max(found) <= max(runs, MAX_PROGRAMS)) if runs else not found
