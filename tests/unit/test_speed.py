"""Does the speed script still know how to ask for its rows?"""

from benchmarks.speed.replay import build, own_rows, peer_rows


def test_rows_of_a_small_size():
    trace = build(512)
    rows = own_rows(trace) + peer_rows(trace)
    assert len({name for name, _, _ in rows}) == len(rows) >= 5
    assert all(rate > 0 for _, rate, _ in rows)
    assert any(name.startswith("replay_lru") for name, _, _ in rows)
