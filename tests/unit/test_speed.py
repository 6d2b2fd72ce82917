"""Does the speed script still know how to ask for its rows?"""

from swizzle_benchmarks.speed.replay import build, own_rows, peer_rows


def test_rows_of_a_small_size():
    trace = build(512)
    rows = own_rows(trace) + peer_rows(trace)
    assert len({name for name, _, _ in rows}) == len(rows) >= 5
    hits = {name: n for name, _, n in rows}
    replays = {n for name, n in hits.items() if name.startswith(("lockstep", "timed", "pycachesim"))}
    assert len(replays) == 1 and replays.pop() > 0  # no replay, with symmetry or without, counts others
    assert any(name.startswith("replay_lru") for name in hits)
