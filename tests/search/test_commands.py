"""Ceiling and sweep as typed, in this process: what they print, write, and refuse."""

import errno
import json
import os
from dataclasses import replace

import numpy as np
import pytest

from swizzle_benchmarks.suite.gemm import gemm
from swizzle_sim.language import Swizzle, family
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.search.history import History
from swizzle_sim.search.loop import Run, RunConfig
from swizzle_sim.search.proposers import Task, propose
from swizzle_sim.search.ranking import ranking_of

SIZES = ("M=1024", "N=1024", "K=128", "BLOCK_M=64", "BLOCK_N=64")


def document(answer):
    code, out, _ = answer
    assert code == 0
    return json.loads(out)


def test_ceiling(typed, small, mi300x, tmp_path):
    words = ("optimize", "gemm", *SIZES, "--proposer", "ceiling", "--evaluations", "6", "--replay", "lockstep")
    found = document(typed(*words, "--out", "table", "--json"))
    order = np.load(next(path for path in found["files"] if path.endswith(".npy")))
    scorer = Scorer(small, mi300x, replay="lockstep")
    best = scorer.score_order(order, baseline_us=1.0).l2_hit_rate
    assert best == found["permutation"]["l2_hit_rate"] >= found["formula"]["l2_hit_rate"]
    assert found["kind"] == "simulated" and found["bound_l2_hit_rate"] >= best
    code, out, err = typed(*words)
    assert code == 0 and "below the proven bound of" in out and not err  # soon over: no line of progress
    code, _, err = typed(*words, "--out", "table")
    assert code == 2 and "never overwritten" in err


def test_ceiling_looks_at_its_folder_before_it_searches(typed, monkeypatch, tmp_path):
    def searched(*args, **options):
        raise AssertionError("searched, and has nowhere to write to")

    monkeypatch.setattr("swizzle_sim.search.strategies.ceiling.ceiling", searched)
    (tmp_path / "file").write_text("")
    words = ("optimize", "gemm", *SIZES, "--proposer", "ceiling", "--out")
    code, _, err = typed(*words, "file")
    assert code == 2 and "file: cannot be written (File exists)" in err
    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    code, _, err = typed(*words, "readonly")
    assert code == 2 and "readonly: cannot be written (Read-only file system)" in err


def refuse(**options):
    raise OSError(errno.EROFS, os.strerror(errno.EROFS))


def test_sweep_names_where_a_swizzle_hurts_and_goes_on(typed, mi300x, tmp_path):
    words = ("sweep", "gemm", *SIZES, "--over", "M,N", "--values", "256,512", "--backend", "serial")
    words += ("--swizzle", "contiguous", "--swizzle", "identity")
    code, out, _ = typed(*words, "-o", "kept")
    assert "simulated, timed replay; not a measurement" in out and "roofline" not in out  # no time is shown
    assert code == 0 and (tmp_path / "kept" / "sweep.sqlite").is_file()
    lost = {}
    for size in (256, 512):
        scorer = Scorer(gemm(M=size, N=size, K=128, BLOCK_M=64, BLOCK_N=64), mi300x)
        swizzled = scorer.score(Swizzle.parse(family("contiguous")))
        lost[size] = 100 * (scorer.baseline.l2_hit_rate - swizzled.l2_hit_rate)
    for size, points in lost.items():
        line = f"hurts: contiguous at M = N = {size}: {points:.2f} points of L2 hit rate lost"
        assert (line in out) == (points > 0)
    assert "hurts: identity" not in out
    resumed = typed(*words, "--resume", "kept", "--json")
    again = document(resumed)
    assert "2 points are stored already" in resumed.err
    assert [point["problem"]["M"] for point in again["points"]] == [256, 512]
    assert typed(*words, "-o", "kept")[0] == 2


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--over", "M,Q", "--values", "256"), "Q"),
        (("--over", "M", "--values", "256", "--set", "xcds=4,8"), "one value for each key"),
        (("--over", "M"), "say what varies"),
        (("--over", "M", "--values", "256", "--backend", "dask"), "--scheduler"),
        (("--over", "M", "--values", "256", "-o", "a", "--resume", "b"), "one of them"),
    ],
)
def test_sweeps_that_cannot_be(typed, words, told):
    code, out, err = typed("sweep", "gemm", *SIZES, *words)
    assert (code, out) == (2, "") and told in err


def test_sweep_over_gpus_that_do_not_exist(typed, small, mi300x):
    words = ("sweep", "gemm", *SIZES, "--set", "l2.size_bytes=64KiB,8MiB", "--set", "cus_per_xcd=4")
    words += ("--backend", "serial", "--replay", "lockstep")
    found = document(typed(*words, "--swizzle", "contiguous", "--json"))
    assert [point["gpu"] for point in found["points"]] == [
        *("mi300x", "mi300x[l2.size_bytes=65536,cus_per_xcd=4]", "mi300x[l2.size_bytes=8388608,cus_per_xcd=4]"),
    ]
    rates = [point["launched"]["l2_hit_rate"] for point in found["points"]]
    assert rates[0] == Scorer(small, mi300x, replay="lockstep").baseline.l2_hit_rate and rates[1] < rates[2]
    code, _, err = typed("sweep", "gemm", *SIZES, "--set", "l2.sizes=1")
    assert code == 2 and "did you mean l2.size_bytes" in err


def test_best_is_the_best_by_what_was_asked(typed, tmp_path):
    words = ("optimize", "gemm", *SIZES, "--proposer", "search", "--evaluations", "24", "--replay", "lockstep")
    words += ("--objective", "hbm_bytes", "--template", "column", "--template", "chunked")
    found = document(typed(*words, "--gpu", "mi300x", "-o", "run", "--json"))
    with History(tmp_path / "run") as history:
        scored = [a for a in history if a.score]
        ranking = ranking_of(history.about, tmp_path / "run")
    best = Run(tmp_path / "run", tuple(scored), ranking).best
    assert best.score.hbm_bytes == min(a.score.hbm_bytes for a in scored)
    assert best.source == found["front"][0]["source"] == (tmp_path / "run" / "best.txt").read_text()


def test_sizes_of_a_users_file(monkeypatch, small, mi300x, tmp_path):
    def load(name, sizes, arch, on_progress):
        assert (name, arch) == ("mine.py", mi300x.arch)
        return replace(gemm(**sizes), file=name)

    monkeypatch.setattr("swizzle_sim.capture.user_kernel.load", load)  # a capture takes seconds
    options = {"templates": ["column"], "evaluations": 1, "sizes": [{"M": 512}], "held_out": [{"M": 640, "N": 512}]}
    own, how = replace(small, file="mine.py"), RunConfig(replay="lockstep")
    task = Task(kernel=own, gpu=mi300x, folder=tmp_path / "run", how=how, options=options)
    rows = propose(task).document["sizes"]
    assert [(row["problem"]["M"], row["problem"]["N"], row["held_out"]) for row in rows] == [
        *((1024, 1024, False), (512, 1024, False), (640, 512, True)),
    ]
