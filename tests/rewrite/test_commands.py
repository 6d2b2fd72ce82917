"""``show`` and ``rewrite`` as typed, on a user's file and on bad input."""

import json
from pathlib import Path

import pytest

from swizzle_sim.capture.user_kernel import load
from swizzle_sim.capture.workload import workload
from swizzle_sim.cli.rewrite import rewrite
from swizzle_sim.language import Swizzle
from swizzle_sim.rewrite import rewrite_workload
from swizzle_sim.rewrite.check import run_side_by_side
from tests.capture.same_trace import needs_triton
from tests.capture.started import started  # noqa: F401  (a fixture)
from tests.capture.uncompiled import uncompiled  # noqa: F401  (a fixture)
from tests.in_process import runner
from xcd_model.errors import SwizzleSimError

DECLARED = """
import triton
import triton.language as tl

from swizzle_sim.capture import Array, Kernel


@triton.jit
def double(x_ptr, y_ptr, n, KIND: tl.constexpr, BLOCK: tl.constexpr):
    # two lines of work
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, (tl.load(x_ptr + at, mask=at < n) * 2).to(KIND), mask=at < n)


kernel = Kernel(
    double,
    sizes={"n": 900},
    arguments=lambda s: {
        "x_ptr": Array(shape=(s.n,), dtype="fp32"),
        "y_ptr": Array(shape=(s.n,), dtype="fp16", role="out"),
        "n": s.n,
    },
    constexprs={"KIND": tl.float16, "BLOCK": 64},
    grid=lambda s: (triton.cdiv(s.n, 64),),
)
"""


@pytest.fixture
def typed(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return runner(monkeypatch, capsys, tmp_path)


@needs_triton
def test_a_users_file_is_rewritten_and_checked(typed, started, tmp_path):  # noqa: F811
    (tmp_path / "mine.py").write_text(DECLARED)
    (tmp_path / "best.txt").write_text("# import os\npid = num_pids - 1 - pid\n")
    done = typed("rewrite", "mine.py", "--swizzle", "best.txt", "-o", "out.py", "--diff")
    assert done.code == 0, done.err
    assert "+    at = swizzle(tl.program_id(0), tl.num_programs(0)) * BLOCK + tl.arange(0, BLOCK)" in done.out
    assert "written: out.py" in done.err and "outputs equal bit for bit" in done.err
    assert len(started) == 1, "the declaration, each small size and its inputs are asked of one process"
    assert "os" not in (tmp_path / "out.py").read_text().replace("pos", "").split("import triton", 1)[0]
    again = typed("rewrite", "out.py", "--swizzle", "best.txt", "--no-check", "--json")
    document = json.loads(again.out)
    assert document["remapped"] == "program" and document["written"] is None and "swizzle_1" in document["diff"]


def test_what_is_no_bijection_exits_1(typed, tmp_path):
    (tmp_path / "bad.txt").write_text("pid = pid // 2\n")
    done = typed("rewrite", "gemm", "--swizzle", "bad.txt", "-o", "out.py")
    assert done.code == 1 and "both compute tile 0" in done.err
    assert not (tmp_path / "out.py").exists()


@pytest.mark.parametrize(
    ("kernel", "options", "message"),
    [
        ("gemm", {"out": Path("none/out.py")}, "there is no folder"),
        ("gemm", {"out": Path("out.py"), "at": "x"}, "one of auto, program, tile"),
        ("gemm", {"out": Path("out.py"), "at": "tile"}, "no loop over tiles"),
        ("my.trace.npz", {}, "give the Python file"),
        ("gemmm", {}, "did you mean gemm"),
    ],
)
def test_bad_input_is_named_and_nothing_is_written(tmp_path, monkeypatch, kernel, options, message):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SwizzleSimError, match=message):
        rewrite(kernel=kernel, swizzle="contiguous", **options)
    assert not list(tmp_path.iterdir())


LOOPED = (
    DECLARED.replace(
        "    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n    tl.store",
        "    for tile in range(tl.program_id(0), tl.cdiv(n, BLOCK), tl.num_programs(0)):\n"
        "        at = tile * BLOCK + tl.arange(0, BLOCK)\n        tl.store",
    )
    .replace('sizes={"n": 900}', 'sizes={"n": 900, "P": 4}')
    .replace("(triton.cdiv(s.n, 64),)", "(min(s.P, triton.cdiv(s.n, 64)),)")
)


@needs_triton
def test_the_ids_that_are_remapped_are_the_ones_that_scores_count(tmp_path, monkeypatch, uncompiled):  # noqa: F811
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "undeclared.py").write_text(LOOPED)
    (tmp_path / "declared.py").write_text(LOOPED.replace("    grid=", '    programs="P",\n    grid='))
    for name, at, programs, grid in (("undeclared", "program", None, 4), ("declared", "tile", 4, 15)):
        file = str(tmp_path / f"{name}.py")
        work, counted = workload(file, {}), load(file, {})
        found = rewrite_workload(work, Swizzle.parse("pid = num_pids - 1 - pid"), num_xcds=8)
        assert (found.at, found.grid.num_pids, counted.grid.num_pids) == (at, grid, grid)
        assert work.programs == counted.programs == programs
        assert ("programs=" in found.note) is (name == "undeclared")
        assert all(case.whole for case in run_side_by_side(found, [(work, None, "whole")]))
    with pytest.raises(SwizzleSimError, match="a swizzle orders its 15 tiles"):
        rewrite_workload(work, Swizzle.parse("pid = pid"), num_xcds=8, at="program")
