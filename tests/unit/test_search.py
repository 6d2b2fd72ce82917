"""Does the search keep what happened, in order, once, and go on where it stopped?"""

import contextlib
import json
import sqlite3

import numpy as np
import pytest

from swizzle_benchmarks.suite.declared import Declared
from swizzle_benchmarks.suite.gemm import gemm
from swizzle_sim.language import family
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.search.candidates import Candidate, family_candidates
from swizzle_sim.search.history import FILE, History, runs_in
from swizzle_sim.search.recorded import recorded_scorer
from swizzle_sim.search.strategies.families import optimize
from xcd_model import RunError, TraceBuilder, gpu

MI300X = gpu("mi300x")
WORKLOAD = gemm(M=2048, N=2048, K=128)
HOSTILE = [
    Candidate("broken", "pid = (", "test"),
    Candidate("python", "__import__('os').system('true')", "test"),
    Candidate("cheat", "pid = pid % 16", "test"),
    Candidate("\x1b[31mred", "# \ud800\npid = 0", "test"),
    Candidate("again", "pid = pid + 0", "test"),
    Candidate("good", family("group_m(size=4)"), "test"),
]


class Stop(BaseException):
    """What a Ctrl-C looks like to the search."""


def stop_after(count):
    def on_attempt(attempt, done, total):
        if done == count:
            raise Stop

    return on_attempt


def facts(run):
    return [(a.number, a.name, a.source, a.verdict, a.score, a.critique) for a in run.attempts]


def test_what_is_refused_or_repeated_is_kept_without_a_score(tmp_path):
    run = optimize(WORKLOAD, MI300X, tmp_path / "run", candidates=HOSTILE, replay="lockstep")
    assert [a.name for a in run.attempts] == ["identity", "broken", "python", "cheat", "\x1b[31mred", "again", "good"]
    assert [a.score is not None for a in run.attempts] == [True, False, False, False, False, False, True]
    assert [a.verdict["bijective"] for a in run.attempts] == [True, False, False, False, False, True, True]
    assert "the launch order" in run.attempts[5].critique
    assert "16 of 64 tiles" in run.attempts[3].critique
    assert {a.name for a in run.ranked} == {"identity", "good"}


def test_a_scorer_of_the_callers_is_that_of_the_run_and_replays_the_launch_order_once(tmp_path, monkeypatch):
    replayed, true = [], Scorer.traffic

    def traffic(self, order, **how):
        replayed.append(order[:2].tolist())
        return true(self, order, **how)

    monkeypatch.setattr(Scorer, "traffic", traffic)
    scorer = Scorer(WORKLOAD, MI300X, replay="lockstep", seed=3)
    candidates = [Candidate("again", "pid = pid + 0", "test"), Candidate("turned", "pid = num_pids - 1 - pid", "test")]
    run = optimize(WORKLOAD, MI300X, tmp_path / "run", candidates=candidates, scorer=scorer)
    with History(tmp_path / "run") as history:
        assert (history.about["replay"], history.about["seed"]) == ("lockstep", 3)
    assert replayed == [[0, 1], [63, 62]]
    assert run.attempts[0].score == scorer.baseline
    assert run.attempts[0].score == scorer.score_order(np.arange(64), baseline_us=scorer.baseline.time_us)


def test_an_interrupted_run_is_kept_and_goes_on(tmp_path):
    candidates = family_candidates(WORKLOAD, MI300X)[:20]
    with pytest.raises(Stop):
        optimize(WORKLOAD, MI300X, tmp_path / "run", candidates=candidates, on_attempt=stop_after(7), replay="lockstep")
    with History(tmp_path / "run") as history:
        assert (history.state, len(history)) == ("interrupted", 7)
        assert len(history.frame()) == 7
    resumed = optimize(WORKLOAD, MI300X, tmp_path / "run", candidates=candidates, resume=True, replay="lockstep")
    assert facts(resumed) == facts(
        optimize(WORKLOAD, MI300X, tmp_path / "whole", candidates=candidates, replay="lockstep")
    )
    assert [path.name for path in runs_in(tmp_path)] == ["run", "whole"]
    again = optimize(WORKLOAD, MI300X, tmp_path / "run", candidates=candidates, resume=True, replay="lockstep")
    assert facts(again) == facts(resumed)


def test_a_run_is_never_overwritten_nor_resumed_as_another(tmp_path):
    folder = tmp_path / "run"
    optimize(WORKLOAD, MI300X, folder, candidates=HOSTILE[:1], replay="lockstep")
    with pytest.raises(RunError, match="never overwritten"):
        optimize(WORKLOAD, MI300X, folder, candidates=HOSTILE[:1], replay="lockstep")
    with pytest.raises(RunError, match="its problem"):
        optimize(gemm(M=1024, N=2048, K=128), MI300X, folder, candidates=HOSTILE[:1], resume=True, replay="lockstep")
    with pytest.raises(RunError, match="its gpu"):
        optimize(WORKLOAD, gpu("mi355x"), folder, candidates=HOSTILE[:1], resume=True, replay="lockstep")
    with pytest.raises(RunError, match="attempt 1 is not"):
        optimize(WORKLOAD, MI300X, folder, candidates=HOSTILE[2:], resume=True, replay="lockstep")
    with pytest.raises(RunError, match="no run here"):
        optimize(WORKLOAD, MI300X, tmp_path / "none", resume=True, replay="lockstep")


def test_a_run_of_an_older_model_says_how_to_make_it_anew(tmp_path):
    folder = tmp_path / "run"
    optimize(WORKLOAD, MI300X, folder, candidates=HOSTILE[:1], replay="lockstep")
    with History(folder) as history:
        about = history.about
    about["gpu_description"]["hbm"]["old_ns"] = 3
    with contextlib.closing(sqlite3.connect(folder / FILE)) as db, db:
        db.execute("UPDATE run SET about = ?", (json.dumps(about),))
    with pytest.raises(RunError, match=r"older model of mi300x.*make it anew.*swizzle-sim optimize"):
        recorded_scorer(about)
    with pytest.raises(RunError, match=r"cannot resume: it was made by an older model"):
        optimize(WORKLOAD, MI300X, folder, candidates=HOSTILE[:1], resume=True, replay="lockstep")


def test_a_damaged_history_says_so(tmp_path):
    (tmp_path / FILE).write_bytes(b"this is no database" * 100)
    with pytest.raises(RunError, match="not a readable history"):
        History(tmp_path)
    (tmp_path / FILE).unlink()
    with sqlite3.connect(tmp_path / FILE) as db:
        db.execute("CREATE TABLE run (format INTEGER, state TEXT, about TEXT)")
        db.execute("INSERT INTO run VALUES (99, 'finished', '{}')")
    db.close()
    with pytest.raises(RunError, match="format 99"):
        History(tmp_path)
    with sqlite3.connect(tmp_path / FILE) as db:
        db.execute("UPDATE run SET format = 1")
    db.close()
    with History(tmp_path) as history:
        for broken in (lambda: history.about, lambda: list(history), lambda: len(history)):
            with pytest.raises(RunError, match="damaged"):
                broken()


def test_two_writers_of_one_run_do_not_mix(tmp_path):
    optimize(WORKLOAD, MI300X, tmp_path / "run", candidates=[], replay="lockstep")
    with History(tmp_path / "run") as history, pytest.raises(RunError, match="another command"):
        history.append(next(iter(history)))


def test_one_command_builds_the_trace_and_the_lattice_once(monkeypatch, typed, tmp_path):
    built, grids = [], []
    trace, lattice = TraceBuilder.trace, Declared.lattice
    monkeypatch.setattr(TraceBuilder, "trace", lambda *given: built.append(given) or trace(*given))
    monkeypatch.setattr(Declared, "lattice", lambda *given: grids.append(given) or lattice(*given))
    done = typed("optimize", "gemm", "M=512", "N=512", "K=64", "--out", "run", "--report", "--json")
    assert (done.code, len(built), len(grids)) == (0, 1, 1)
    assert (tmp_path / "run" / "report.html").is_file()
