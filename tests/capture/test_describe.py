"""Is a kernel that is not Triton's a kernel like others once it is described?"""

import re
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

import swizzle_sim as sim
from swizzle_sim.search.candidates import Candidate
from swizzle_sim.search.recorded import recorded_kernel
from tests.in_process import runner
from xcd_model.errors import CaptureError, SizeError, TraceError

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "hip.md"
FIGURES = {"threads": 256, "vgprs": 128, "lds_bytes": 32768}


def rows(build, at):
    x = build.array("x", rows=64, cols=64, item_bytes=2)
    build.step(build.read(x, row=at.pid, col=np.arange(0, 64, 32), rows=1, cols=32))


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "kept"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_page_prints_what_it_says(here, capsys):
    text = PAGE.read_text()
    exec(compile(re.search(r"```python\n(.*?)```", text, re.DOTALL)[1], str(PAGE), "exec"), {})
    printed = capsys.readouterr().out
    assert printed == re.search(r"```text\n(.*?)```", text, re.DOTALL)[1]
    assert sim.kernel("hip_gemm.trace.npz").grid == sim.Grid((1024,), tiles=(32, 32))


def test_a_described_gemm_counts_as_the_suites(here):
    suite = sim.kernel("gemm", M=1024, N=512, K=256, BLOCK_M=128, BLOCK_N=128)

    def touches(build, at):
        a, b = (build.array(name, rows=m, cols=n, item_bytes=2) for name, m, n in (("A", 1024, 256), ("B", 256, 512)))
        c, k = build.array("C", rows=1024, cols=512, item_bytes=2), np.arange(0, 256, 64)
        row, col = at.pid_m * 128, at.pid_n * 128
        build.step(build.read(a, row=row, col=k, rows=128, cols=64), build.read(b, row=k, col=col, rows=64, cols=128))
        build.step(build.write(c, row=row, col=col, rows=128, cols=128))

    mine = sim.describe("mine", suite.grid, suite.resources, touches, flops=suite.flops, sizes=suite.problem)
    for order in ("row", "contiguous+column", "pid = (pid + M) % num_pids"):
        ours, theirs = (asdict(sim.score(kernel, order, "mi300x")) for kernel in (suite, mine))
        assert {**ours, "energy_j": 0, "energy_low_j": 0, "energy_high_j": 0} == {
            **theirs, "energy_j": 0, "energy_low_j": 0, "energy_high_j": 0,
        }  # fmt: skip


def test_a_run_of_it_is_found_again(here, monkeypatch, capsys):
    typed = runner(monkeypatch, capsys, here)
    kernel = sim.describe("rows", 64, FIGURES, rows)
    assert Path(kernel.file).parent == here / "kept" / "swizzle-sim" / "described"
    candidates = [Candidate("reverse", sim.family("reverse"), "mine")]
    run = sim.optimize(kernel, sim.gpu("mi300x"), here / "run", candidates=candidates, replay="lockstep")
    with sim.History(run.folder) as history:
        assert recorded_kernel(history.about).digest == kernel.digest
    answer = typed("score", kernel.file, "--swizzle", "reverse", "--replay", "lockstep", "--json")
    assert answer.json["score"]["l2_hit_rate"] == run.attempts[1].score.l2_hit_rate


def test_ids_are_those_of_a_swizzle(here):
    seen = {}

    def touches(build, at):
        seen.update(x=at.x, y=at.y, pid=at.pid)
        with pytest.raises(AttributeError, match="a grid of 4x3 has no z"):
            _ = at.z
        rows(build, at)

    kernel = sim.describe("flat", "4x3", FIGURES, touches)
    assert seen["x"].shape == (12, 1) and (seen["x"] + 4 * seen["y"] == seen["pid"]).all()
    assert len(kernel.lattice) > 10  # no sizes: a swizzle is tried on other grids


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        ({"grid": "4x0"}, SizeError, "at least 1"),
        ({"resources": {"threads": 64}}, CaptureError, "threads, vgprs and lds_bytes are needed"),
        ({"resources": {**FIGURES, "sgprs": 3}}, CaptureError, "resources: sgprs"),
        ({"resources": {**FIGURES, "threads": -1}}, TraceError, "resources.gfx942.threads = -1"),
        ({"dtype": "half"}, CaptureError, "dtype = 'half' is none of bf16"),
        ({"flops": float("nan")}, TraceError, "facts.flops"),
        ({"sizes": {"M": 0}}, SizeError, "M = 0"),
        ({"file": "mine.npz"}, CaptureError, "a trace file is called mine.trace.npz"),
        ({"touches": lambda build, at: None}, TraceError, "no workgroup touches anything"),
    ],
)
def test_what_cannot_be_is_refused_by_name(here, change, error, said):
    given = {"name": "rows", "grid": 64, "resources": FIGURES, "touches": rows, **change}
    with pytest.raises(error, match=re.escape(said)):
        sim.describe(**given)
