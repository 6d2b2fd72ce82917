"""Reads of lines on their way, counted as hits and as misses."""

import pytest

from benchmarks.fidelity import late_hits
from benchmarks.fidelity.rows import all_rows

ROWS = late_hits.rows()
RATE = next(row for row in ROWS if row.quantity == "l2_hit_pct")
MISSES = next(row for row in ROWS if row.quantity == "l2_read_misses")


def counts(row, late, hits=60, read_misses=40):
    return {
        "l2_late_hits": late,
        "l2_requests": 100,
        "l2_hits": hits,
        "l2_hit_pct": float(hits),
        "l2_read_misses": read_misses / 100 * row.measured,
    }


def test_a_rate_loses_its_late_hits_in_points():
    found = late_hits.both(RATE, counts(RATE, late=25))
    assert found.late == pytest.approx(0.25)
    assert found.as_hits == pytest.approx(60 - RATE.measured)
    assert found.as_misses == pytest.approx(35 - RATE.measured)


def test_misses_gain_them_in_percent_of_what_was_counted():
    found = late_hits.both(MISSES, counts(MISSES, late=0.3 * MISSES.measured))
    assert found.as_hits == pytest.approx(-60)
    assert found.as_misses == pytest.approx(-30)


def test_a_kernel_with_few_late_hits_says_nothing_and_the_one_that_tells_most_comes_first():
    some = [
        late_hits.Both(RATE, 0.019, 1.0, 1.0),
        late_hits.Both(RATE, 0.5, -2.0, -10.0),
        late_hits.Both(RATE, 0.1, 4.0, -20.0),
        late_hits.Both(MISSES, 0.2, 1.0, 40.0),
    ]
    lines = late_hits.table(some).splitlines()
    assert lines[2:] == [
        f"| mi355x | {MISSES.kernel} | 1 | 20 % | 1.0 % | 40.0 % |",
        f"| mi300x | {RATE.kernel} | 2 | 30 % | 3.0 points | 15.0 points |",
    ]


def test_rows_are_counted_hit_rates_of_one_gpu_and_misses_of_the_other():
    assert {(row.gpu, row.quantity) for row in ROWS} == {("mi300x", "l2_hit_pct"), ("mi355x", "l2_read_misses")}
    assert sum(row.gpu == "mi300x" for row in ROWS) == sum(row.id.startswith("paper/") for row in all_rows())
    assert {row.kernel for row in ROWS if row.gpu == "mi355x"} == set(late_hits.TUTORIAL)


def test_the_command_prints_the_table_of_what_was_replayed(monkeypatch, capsys):
    monkeypatch.setattr(late_hits, "rows", lambda: [MISSES])
    late_hits.main()
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].startswith("| GPU | kernel |") and f"| mi355x | {MISSES.kernel} | 1 |" in printed[2]
