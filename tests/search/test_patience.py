"""Does a run of families that would take too long try an even choice of them, the same one when it is resumed?"""

from swizzle_sim import search
from swizzle_sim.candidates import Candidate, family_candidates, thinned


def test_single_families_come_before_combinations_and_both_evenly(small, tight):
    every = family_candidates(small, tight)
    for most in (24, 60, len(every) - 1):
        kept = thinned(every, most)
        assert len(kept) == most == len({one.name for one in kept})
        assert [one for one in every if one in kept] == kept, "in their own order"
    single = [one for one in every if "+" not in one.name]
    assert set(single) <= set(thinned(every, 2 * len(single)))
    assert thinned(every, len(every)) == every
    names = [Candidate(f"a(n={i})", "", "") for i in range(10)]
    assert [one.name for one in thinned(names, 5)] == [f"a(n={i})" for i in range(0, 10, 2)]


def test_a_run_without_a_time_is_cut_and_one_with_a_time_is_not(small, tight, tmp_path, monkeypatch):
    monkeypatch.setattr(search, "LOOKUPS", 1)
    every = family_candidates(small, tight)
    run = search.optimize(small, tight, tmp_path / "cut", replay="lockstep", max_minutes=None)
    chosen = [one.name for one in thinned([Candidate("identity", "", ""), *every], search.FEWEST)]
    assert [attempt.name for attempt in run.attempts] == chosen
    again = search.optimize(small, tight, tmp_path / "cut", replay="lockstep", resume=True)
    assert len(again.attempts) == search.FEWEST
    monkeypatch.setattr(search, "FEWEST", len(every))  # nothing is cut where a time is given
    timed = search.optimize(small, tight, tmp_path / "timed", replay="lockstep", max_minutes=0.0)
    assert 1 <= len(timed.attempts) < search.FEWEST and timed.attempts[0].name == "identity"
