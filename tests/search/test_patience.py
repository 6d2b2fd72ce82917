"""Does a run of families that would take too long try the first of the shortlist, the same ones when it is resumed?"""

from itertools import islice

import pytest

from swizzle_benchmarks.suite.gemm import gemm
from swizzle_benchmarks.suite.softmax import softmax
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.search.candidates import distinct_shortlist, family_specs, shortlist
from swizzle_sim.search.strategies import families as search


@pytest.fixture(scope="module")
def little():
    """8 x 8 tiles, for which there are fewer families."""
    return gemm(M=512, N=512, K=128, BLOCK_M=64, BLOCK_N=64)


def test_a_run_without_a_time_is_cut_and_one_with_a_time_is_not(little, tight, tmp_path, monkeypatch):
    monkeypatch.setattr(search, "LOOKUPS", 1)
    run = search.optimize(little, tight, tmp_path / "cut", replay="lockstep", max_minutes=None)
    new = islice(distinct_shortlist(Scorer(little, tight, replay="lockstep")), search.FEWEST - 1)
    first = [one.name for one, _ in new]
    assert [attempt.name for attempt in run.attempts] == ["identity", *first]
    assert all(attempt.score for attempt in run.attempts), "none repeats another's permutation"
    again = search.optimize(little, tight, tmp_path / "cut", replay="lockstep", resume=True)
    assert len(again.attempts) == search.FEWEST
    timed = search.optimize(little, tight, tmp_path / "timed", replay="lockstep", max_minutes=0.0)
    assert 1 <= len(timed.attempts) < search.FEWEST and timed.attempts[0].name == "identity"
    whole = search.optimize(little, tight, tmp_path / "timed", replay="lockstep", resume=True)
    every = sum(1 for _ in family_specs(little, tight))
    assert len(whole.attempts) == 1 + every
    assert [one.name for one in whole.attempts[1:]] == [one.name for one in shortlist(little, tight)]


def test_all_are_listed_where_the_distinct_ones_are_fewer_than_what_there_is_time_for(
    little, tight, tmp_path, monkeypatch
):
    scorer = Scorer(little, tight, replay="lockstep")
    distinct, every = sum(1 for _ in distinct_shortlist(scorer)), sum(1 for _ in family_specs(little, tight))
    assert distinct + 2 < every
    for more, expected in ((1, distinct + 1), (2, every + 1)):
        monkeypatch.setattr(search, "LOOKUPS", scorer.lookups * (distinct + more + 0.5))
        run = search.optimize(little, tight, tmp_path / str(more), scorer=scorer)
        assert len(run.attempts) == expected and sum(a.score is not None for a in run.attempts) == distinct + 1


def test_nothing_is_searched_where_workgroups_share_no_lines(mi300x, small, tmp_path):
    rows = softmax(M=512, N=1024)
    for replay in ("timed", "lockstep"):
        run = search.optimize(rows, mi300x, tmp_path / replay, replay=replay)
        assert len(run.attempts) == search.SETTLED
    by_time = search.optimize(rows, mi300x, tmp_path / "time", replay="lockstep", objective="time", max_minutes=0.0)
    assert by_time.ranking.main.name == "time"
    assert not search.is_settled(Scorer(small, mi300x, replay="lockstep"))
