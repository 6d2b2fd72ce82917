"""Is the table of what ranks orders the one that the fidelity page and the measured speedups give?"""

from itertools import combinations

from swizzle_benchmarks.fidelity.ranked_pairs import (
    PAGE,
    ROOT,
    TABLE,
    Known,
    from_held_out,
    from_page,
    measured_speedups,
    table,
    together,
)
from swizzle_benchmarks.fidelity.rows import paper_rows
from swizzle_sim.ranking import evidence_of


def test_the_table_is_what_the_page_says():
    text = TABLE.read_text(encoding="utf-8")
    page = from_page((ROOT / PAGE).read_text(encoding="utf-8").splitlines())
    for known in together([*page, *from_held_out()]):
        assert table([known]).partition("\n\n")[2] in text, known.objective


def test_the_pairs_of_the_mi300x_are_those_of_its_measured_speedups():
    of = {}
    for row in paper_rows():
        if row.bijective:
            of.setdefault(row.workload, []).append(measured_speedups()[row.id])
    apart = [max(pair) / min(pair) > 1.03 for each in of.values() for pair in combinations(each, 2)]
    known = evidence_of("mi300x", "time")
    assert known.pairs == sum(apart) and 0 <= known.right <= known.pairs and not known.ranks


def test_a_gap_is_told_apart_from_where_signs_are_better_than_a_coins():
    coin = [(0.1, 0.002), (-0.1, 0.002)] * 10
    sure = [(0.1, 0.03)] * 20
    known = Known("g", "time", True, tuple(coin + sure), "")
    assert known.tells_apart == 0.0025 and known.ranked == (30, 40)
    assert Known("g", "time", True, tuple(sure), "").tells_apart == 0.0
