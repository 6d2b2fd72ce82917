"""Does the search find what there is, repeat itself, go on, and score nothing that is not a bijection?"""

import contextlib
import json
import sqlite3
from dataclasses import replace

import numpy as np
import pytest

from swizzle_benchmarks.suite.declared import Declared
from swizzle_benchmarks.suite.gemm import gemm
from swizzle_sim.language import Swizzle, family
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.search.bench import sampled_hit_rate, sampled_xcds
from swizzle_sim.search.candidates import Candidate, distinct_shortlist, family_candidates, shortlist
from swizzle_sim.search.history import FILE, Attempt, History, runs_in
from swizzle_sim.search.judge import Judge
from swizzle_sim.search.loop import Run
from swizzle_sim.search.ranking import OBJECTIVES, pareto_front, read_objectives
from swizzle_sim.search.recorded import recorded_scorer
from swizzle_sim.search.strategies.families import optimize
from swizzle_sim.search.strategies.halving import SearchPlan, most_arms, rounds_of, search
from swizzle_sim.search.templates import TemplateSpace, family_template, read_template
from swizzle_sim.search.what_if import what_if
from swizzle_sim.workload.kernels import kernel
from xcd_model import TraceBuilder, gpu
from xcd_model.errors import RunError, SearchError, UnknownName
from xcd_model.replay.traffic import READ_MISSES, READ_REQUESTS, WRITE_MISSES, WRITE_REQUESTS
from xcd_model.spec.nvidia import L2Partitions


def rows(found):
    return [(a.number, a.name, a.verdict["stage"], a.score and a.score.l2_hit_rate) for a in found.attempts]


@pytest.fixture(scope="module")
def chunked(small, tight):
    return family_template("chunked+group_m", small, tight)


@pytest.fixture(scope="module")
def optimum(small, tight, chunked):
    """Best hit rate of all 512 combinations, and that of the launch order."""
    scorer = Scorer(small, tight, replay="lockstep")
    points = TemplateSpace(chunked, [small], tight).points()
    best = max(scorer.score(Swizzle.parse(chunked.source(values))).l2_hit_rate for values in points)
    return best, scorer.baseline.l2_hit_rate


@pytest.mark.parametrize("seed", range(3))
def test_the_default_ends_within_two_points_of_the_optimum(seed, small, tight, chunked, optimum, tmp_path):
    plan = SearchPlan(templates=(chunked,), evaluations=50)
    found = search([small], tight, tmp_path / "run", plan, replay="lockstep", threads=2, seed=seed)
    assert optimum[0] >= found.front[0].score.l2_hit_rate >= optimum[0] - 0.02
    assert optimum[0] > optimum[1] + 0.04  # so that there is something to find


def test_small_spaces_are_tried_whole(small, tight, tmp_path):
    plan = SearchPlan(templates=(family_template("group_m", small, tight),), evaluations=16)
    found = search([small], tight, tmp_path / "run", plan, replay="lockstep")
    assert {a.verdict["parameters"]["group_m_size"] for a in found.attempts[1:]} == set(range(1, 17))


def test_same_for_any_number_of_threads_and_after_an_interruption(small, tight, tmp_path):
    plan = SearchPlan(evaluations=70)
    whole = search([small], tight, tmp_path / "whole", plan, replay="timed", threads=1)
    assert {"sampled", "duplicate", "replay"} <= set(whole.counts)

    def stop(attempt, done, total):
        if attempt.number == 40:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        search([small], tight, tmp_path / "cut", plan, replay="timed", threads=2, on_attempt=stop)
    with History(tmp_path / "cut") as history:
        assert history.state == "interrupted" and 41 <= len(history) <= 48
    again = search([small], tight, tmp_path / "cut", plan, replay="timed", threads=2, resume=True)
    assert rows(again) == rows(whole) and again.counts == whole.counts
    with pytest.raises(RunError, match="cannot resume: its search is"):
        search([small], tight, tmp_path / "cut", SearchPlan(evaluations=71), replay="timed", resume=True)


def test_a_run_of_another_replacement_policy_is_not_gone_on_with(small, tight, tmp_path, monkeypatch):
    plan = SearchPlan(evaluations=2)
    search([small], tight, tmp_path / "run", plan, replay="lockstep")
    monkeypatch.setattr("swizzle_sim.search.loop.POLICY", "fifo")
    with pytest.raises(RunError, match="cannot resume: its replacement is lru, this command's is fifo"):
        search([small], tight, tmp_path / "run", plan, replay="lockstep", resume=True)


def test_pruning_by_the_bound_loses_nothing(small, tight, chunked, optimum, tmp_path):
    plan = SearchPlan(templates=(chunked,), evaluations=10_000)
    found = search([small], tight, tmp_path / "run", plan, replay="lockstep", threads=2)
    assert found.counts["bound"] and found.counts["duplicate"]
    assert found.front[0].score.l2_hit_rate == optimum[0]


def test_what_is_no_bijection_has_no_score(small, tight, tmp_path):
    text = "template folded(c: 1..6)\n    pid = pid // c * c\n"
    found = search([small], tight, tmp_path / "run", SearchPlan(templates=(read_template(text),)), replay="lockstep")
    stages = [a.verdict["stage"] for a in found.attempts[1:]]
    assert stages == ["duplicate", *["grid"] * 5]
    assert all(a.score is None and "computed by nobody" in a.critique for a in found.attempts[2:])


def test_a_candidate_has_to_hold_at_every_size(small, tight, tmp_path):
    other = gemm(M=640, N=576, K=128, BLOCK_M=64, BLOCK_N=64)
    text = "template turned(c: {1, 2})\n    pid = 255 - pid if c == 1 else num_pids - 1 - pid\n"
    found = search(
        [small, other], tight, tmp_path / "r", SearchPlan(templates=(read_template(text),)), replay="lockstep"
    )
    assert [a.verdict["stage"] for a in found.attempts[1:]] == ["grid", "full replay"]
    kept = found.attempts[2]
    gains = [
        Scorer(k, tight, replay="lockstep").score(Swizzle.parse(kept.source)).l2_hit_rate
        - Scorer(k, tight, replay="lockstep").baseline.l2_hit_rate
        for k in (small, other)
    ]
    assert kept.verdict["costs"] == pytest.approx([-sum(gains) / 2])
    assert len(kept.verdict["sizes"]) == 2


def test_two_objectives_give_a_front(small, tight, tmp_path):
    plan = SearchPlan(evaluations=40, objectives=read_objectives("l2_hit_rate,time"))
    found = search([small], tight, tmp_path / "run", plan, threads=2)
    costs = [a.verdict["costs"] for a in found.attempts if a.score]
    for one in found.front:
        mine = one.verdict["costs"]
        assert not any(c != mine and c[0] <= mine[0] and c[1] <= mine[1] for c in costs)


def test_a_run_stored_by_older_words_is_counted_alike():
    stages = ("baseline", "replay", "full replay", "refused", "grid", "sampled", "duplicate")
    attempts = [
        Attempt(number=i, name="", source="", proposer="search", verdict={"stage": stage}, score=None)
        for i, stage in enumerate(stages)
    ]
    assert Run(None, tuple(attempts)).counts == {"replay": 2, "refused": 2, "sampled": 1, "duplicate": 1}


def test_pareto_front():
    assert pareto_front([(1, 5), (2, 4), (2, 3), (3, 3), (0, 9), (5, float("inf"))]) == [4, 0, 2]
    assert pareto_front([(2,), (1,), (1,)]) == [1]
    assert pareto_front([]) == []


def test_halving_spends_about_what_it_may():
    for arms in (1, 2, 7, 46):
        spent = sum(n * each for n, each in rounds_of(arms, 1000))
        assert 500 <= spent <= 1000
    assert rounds_of(1, 9) == [(1, 9)]
    assert [most_arms(evaluations) for evaluations in (0, 1, 3, 4, 11, 12, 31, 32, 200)] == [1, 1, 1, 2, 2, 4, 4, 8, 32]


def test_a_search_of_the_families_begins_with_their_shortlist(small, tight, tmp_path):
    plan = SearchPlan(evaluations=24, objectives=read_objectives("time"))
    found = search([small], tight, tmp_path / "run", plan)
    published = {one.name for one in shortlist(small, tight)}
    first = [a.name for a in found.attempts[1:] if a.verdict["stage"] == "full replay"][:12]
    assert len({name.partition("(")[0] for name in first}) == len(first), "one of each template in turn"
    assert len(published & set(first)) >= 10, "the others have the middle of a range, as nothing is published"
    names = [a.name for a in found.attempts]
    assert len(set(names)) == len(names), "nothing is suggested twice"


def test_where_hit_rates_decide_the_best_on_a_sample_of_xcds_go_first(small, tight, tmp_path):
    found = search([small], tight, tmp_path / "run", SearchPlan(evaluations=60), replay="lockstep")
    judge = Judge(Scorer(small, tight, replay="lockstep"))
    costs = [judge.bench.sample((order,)) for _, order in distinct_shortlist(judge.scorer)]
    assert judge.sample(found.attempts[1]) <= min(costs)
    replayed = [judge.sample(a) for a in found.attempts[1:] if a.score][:20]
    assert replayed == sorted(replayed)
    assert found.counts["replay"] == 60, "what screened candidates leave of the rounds is spent too"


def test_times_are_not_screened_by_the_lockstep_replay(small, tight, tmp_path):
    for names, screened in (("time", 0), ("energy", 0), ("balance", 0), ("hbm_bytes", 1)):
        plan = SearchPlan(evaluations=20, objectives=read_objectives(names))
        found = search([small], tight, tmp_path / names, plan, replay="timed")
        assert any("screened" in a.verdict for a in found.attempts) == screened


def test_on_one_xcd_nothing_is_placed(small, tmp_path):
    from swizzle_benchmarks.suite.softmax import softmax

    h200 = gpu("h200")
    found = search([small], h200, tmp_path / "run", SearchPlan(evaluations=20), replay="lockstep")
    assert not any(part in a.name for a in found.attempts for part in ("contiguous", "chunked", "row_bands"))
    rows_alone = search([softmax(M=64, N=512)], h200, tmp_path / "rows", SearchPlan(evaluations=20), replay="lockstep")
    assert [a.name for a in rows_alone.attempts] == ["identity"] and rows_alone.counts == {}


def test_bad_questions():
    with pytest.raises(UnknownName, match="did you mean time"):
        read_objectives("tme")
    with pytest.raises(SearchError, match="Pareto"):
        read_objectives("time,time")
    with pytest.raises(SearchError, match="at least 1"):
        SearchPlan(evaluations=0)
    assert OBJECTIVES["time"].largest is False


# ---- Is the hit rate of a sample that of the same XCDs in a replay of all of them?
def rate_of(traffic, xcds):
    counts = traffic.per_xcd[list(xcds)].sum(axis=0)
    return 1 - (counts[READ_MISSES] + counts[WRITE_MISSES]) / (counts[READ_REQUESTS] + counts[WRITE_REQUESTS])


@pytest.mark.parametrize("programs", [None, 24])
@pytest.mark.parametrize("name", ["gemm", "stencil_2d"])
def test_a_sample_is_a_part_of_the_replay(small, tight, name, programs):
    work = replace(small if name == "gemm" else kernel("stencil_2d", M=512, N=512), programs=programs)
    scorer = Scorer(work, replace(tight, l1i=None), replay="lockstep")
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(work.grid.num_pids)
        assert sampled_hit_rate(scorer, order) == pytest.approx(rate_of(scorer.traffic(order), (0, 4)), abs=1e-12)


def test_few_xcds_are_all_sampled(small, tight):
    assert sampled_xcds(1) == (0,) and sampled_xcds(2) == (0, 1) and sampled_xcds(6) == (0, 3)
    scorer = Scorer(small, what_if(tight, {"xcds": 2}), replay="lockstep")
    order = np.random.default_rng(0).permutation(256)
    assert sampled_hit_rate(scorer, order) == pytest.approx(scorer.traffic(order).l2_hit_rate, abs=1e-12)


def test_an_l2_of_two_sides_is_sampled_whole(small, tight):
    sides = L2Partitions(coherence_bits=tight.l2.line_bytes * 5, cu_groups=2, remote_ns=90.0)
    scorer = Scorer(small, replace(tight, mall=None, l1i=None, l2_partitions=sides), replay="lockstep")
    order = np.random.default_rng(0).permutation(256)
    traffic = scorer.traffic(order)
    assert traffic.remote_hits > 0
    assert sampled_hit_rate(scorer, order) == pytest.approx(rate_of(traffic, (0, 4)), abs=1e-12)


def test_xcds_without_work_miss_nothing(tight):
    lone = kernel("gemm", M=64, N=64, K=64, BLOCK_M=64, BLOCK_N=64)  # one workgroup, on XCD 0 or on one not sampled
    scorer = Scorer(lone, replace(tight, dispatch_offset=1), replay="lockstep")
    assert sampled_hit_rate(scorer, np.arange(1)) == 1.0


# ---- Does the search keep what happened, in order, once, and go on where it stopped?
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
