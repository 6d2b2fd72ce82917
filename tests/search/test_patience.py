"""Is the shortlist varied at the front, and does a run that would take too long try its first ones, the same again?"""

import time
from itertools import islice

import pytest

from swizzle_benchmarks.suite.gemm import gemm
from swizzle_benchmarks.suite.softmax import softmax
from swizzle_sim.base import disk_cache
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.search import facts as facts_module
from swizzle_sim.search.candidates import distinct_shortlist, family_specs, shortlist
from swizzle_sim.search.facts import facts_of
from swizzle_sim.search.strategies import families as search
from swizzle_sim.workload.kernels import kernel
from xcd_model.errors import SearchError


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


KERNELS = (
    ("softmax", {"M": 64, "N": 256}),
    ("gemm", {"M": 1024, "N": 1024, "K": 128}),
    ("fdtd_2d", {"Nx": 256, "Ny": 256}),
)


def test_the_shortlist_is_every_family_once_and_varied_at_the_front(mi300x):
    for name, sizes in KERNELS:
        work = kernel(name, **sizes)
        listed = [candidate.name for candidate in shortlist(work, mi300x)]
        assert sorted(listed) == sorted(set(family_specs(work, mi300x)))
        kinds = [spec.split("(")[0] for spec in listed]
        front = len(set(kinds)) if len(listed) < 10 else 8
        assert len(set(kinds[:front])) >= min(front, 6)
    first = [candidate.name for candidate in shortlist(kernel("gemm"), mi300x)]
    assert first.index("contiguous+group_m(size=8)") < first.index("contiguous+group_m(size=32)")


def test_facts_are_kept_and_forgotten_with_the_source(tmp_path, monkeypatch, mi300x):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    work = kernel("gemm", M=512, N=512, K=64)
    first = facts_of(work, mi300x)
    monkeypatch.setattr(facts_module, "work_out", lambda scorer: pytest.fail("worked out again"))
    assert facts_of(kernel("gemm", M=512, N=512, K=64), mi300x) == first
    monkeypatch.setattr(disk_cache, "_digest_once", lambda folder: "other")
    with pytest.raises(pytest.fail.Exception):
        facts_of(work, mi300x)


@pytest.mark.parametrize("seconds", [0.0, 0.02])
def test_what_a_thread_begins_to_find_goes_on_where_it_stopped_and_raises_where_it_is_asked_for(seconds):
    def found(n):
        yield from range(1, n)
        raise SearchError("no more", code="over")

    for n in (3, 100_000):
        result, rest = search._beside(lambda: time.sleep(seconds), found(n))
        assert result is None and [next(rest) for _ in range(1, n)] == list(range(1, n))
        with pytest.raises(SearchError, match="no more"):
            next(rest)
