"""Reads of lines on their way, counted as hits and as misses."""

import pytest

from benchmarks.fidelity import late_hits
from benchmarks.fidelity.rows import all_rows

ROWS = late_hits.rows()
RATE = next(row for row in ROWS if row.quantity == "l2_hit_pct")
MISSES = next(row for row in ROWS if row.quantity == "l2_misses")


def counts(row, late, hits=60, misses=40):
    return {
        "l2_late_hits": late,
        "l2_requests": 100,
        "l2_hits": hits,
        "l2_hit_pct": float(hits),
        "l2_misses": misses / 100 * row.measured,
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


def test_a_kernel_counts_the_orders_with_late_hits_and_the_widest_apart_come_first():
    other, early = (next(row for row in ROWS if row.kernel == kernel) for kernel in ("spmv", "transpose"))
    some = [
        late_hits.Both(RATE, 0.019, 1.0, 1.0),
        late_hits.Both(RATE, 0.5, -2.0, -10.0),
        late_hits.Both(RATE, 0.1, 4.0, -20.0),
        late_hits.Both(other, 0.1, -1.0, -14.0),
        late_hits.Both(MISSES, 0.2, 1.0, 40.0),
        late_hits.Both(early, 0.0, 9.0, 9.0),
    ]
    lines = late_hits.by_kernel(some).splitlines()
    assert lines[2:] == [
        f"| mi355x | {MISSES.kernel} | 1 of 1 | 20 % | 1.0 % | 40.0 % |",
        "| mi300x | spmv | 1 of 1 | 10 % | 1.0 points | 14.0 points |",
        f"| mi300x | {RATE.kernel} | 2 of 3 | 30 % | 3.0 points | 15.0 points |",
    ]


def test_rows_are_what_an_l2_counted_itself():
    counted = {("mi300x", "l2_hit_pct"), ("mi355x", "l2_hit_pct"), ("mi355x", "l2_misses")}
    assert {(row.gpu, row.quantity) for row in ROWS} == counted
    assert sum(row.gpu == "mi300x" for row in ROWS) == sum(row.table == "paper" for row in all_rows())
    gemms = [row for row in ROWS if row.gpu == "mi355x"]
    names = ("hk", "persistent", "gluon_persistent", "cut", "flydsl", "gluon_cube")
    assert {row.kernel for row in gemms} == {f"gemm_{name}" for name in names}
    assert max(row.problem["M"] * row.problem["N"] for row in gemms) == 14592**2


def test_the_command_prints_the_table_of_what_was_replayed(monkeypatch, capsys):
    monkeypatch.setattr(late_hits, "rows", lambda: [MISSES])
    late_hits.main()
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].startswith("| GPU | kernel |") and f"| mi355x | {MISSES.kernel} | 1 of 1 |" in printed[2]
