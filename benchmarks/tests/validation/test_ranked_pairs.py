"""Is the table of what ranks orders the one that the fidelity page and the measured speedups give?"""

from itertools import combinations

import numpy as np

from swizzle_benchmarks.validation import gains, held_out
from swizzle_benchmarks.validation.ranked_pairs import (
    PAGE,
    ROOT,
    TABLE,
    Known,
    Order,
    as_ranked,
    drawn_orders,
    from_drawn,
    from_page,
    gaps_of_orders,
    losses,
    measured_speedups,
    said_of,
    table,
    timed_orders,
    together,
)
from swizzle_benchmarks.validation.rows import paper_rows
from swizzle_sim.search.ranking import evidence_of


def test_the_table_is_what_the_page_says():
    text = TABLE.read_text(encoding="utf-8")
    page = (ROOT / PAGE).read_text(encoding="utf-8").splitlines()
    orders = timed_orders(page)
    for known in together([*from_page(page), *from_drawn()]):
        for one in said_of(known, orders):
            assert table([one]).partition("\n\n")[2] in text, one.objective


def test_what_the_choice_loses_is_what_its_launches_took():
    drawn = drawn_orders()
    found = losses(drawn, "h200", 0.01)
    assert len(found) == evidence_of("h200", "time").launches and not losses(drawn, "mi300x", 0.01)
    assert all(min(pair) >= 0 for pair in found) and min(map(min, found)) == 0
    wide = losses(drawn, "h200", 10.0)  # everything ties
    assert [b for _, b in wide] == [b for _, b in found]


def test_of_a_launch_whose_orders_all_tie_one_that_reads_least_is_chosen():
    names = [name for name in held_out.DRAWS if name.startswith("h200")]
    groups = [group for name in names for group in held_out.of_launch(held_out.committed(name))]
    chosen = [lost for lost, _ in losses(drawn_orders(), "h200", 10.0)]
    for lost, group in zip(chosen, groups, strict=True):
        least = min(one.predicted_bytes for one in group)
        near = [held_out.regret(group, one) for one in group if one.predicted_bytes < 1.1 * (least + 1)]
        assert lost in near, group[0]
    assert chosen != [held_out.regret(group, group[0]) for group in groups]


def test_ties_of_time_are_ranked_by_reads_where_those_rank_them():
    """Of each workload two orders that tie, of which the one that reads less is faster, and one that is told apart."""
    orders = [
        order
        for place in range(40)
        for order in (
            *(Order("g", str(place), 10.5, 10.0, 200.0), Order("g", str(place), 10.0, 10.001, 100.0)),
            *(Order("g", str(place), 20.0, 20.0, 100.0), Order("other", str(place), 1.0, 1.0, 1.0)),
        )
    ]
    pairs = tuple((measured, time) for measured, time, _ in gaps_of_orders(orders, "g"))
    coin = tuple((0.1, sign * 0.0004) for sign in (1, -1) for _ in range(20))
    times = Known("g", "time", True, pairs + coin, "")
    assert times.tells_apart == 0.001
    by_tool, ties = as_ranked(times, orders)
    assert ties.ranked == (40, 40) and by_tool.ranked == (120, 120) and by_tool.tells_apart == times.tells_apart
    assert times.ranked == (80 + 20, 120 + 40) and "alone = 100" in table([by_tool])
    assert as_ranked(times, [one for one in orders if one.gpu == "other"]) == [times]


def test_six_kernels_of_others_have_no_copy_of_their_launch_order():
    mine = [one for one in drawn_orders() if one.gpu == "h100" and not one.workload.startswith("h100")]
    assert len({one.workload for one in mine}) == 12 and len({(one.workload, one.predicted_us) for one in mine}) > 80
    known = evidence_of("h100", "time")
    assert known.ranks and known.pairs > 200 and known.lost < known.launched


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


def test_the_intervals_of_gains_are_those_of_the_judged_rows():
    text = TABLE.read_text(encoding="utf-8")
    page = (ROOT / PAGE).read_text(encoding="utf-8").splitlines()
    apart = {gpu: evidence_of(gpu, "time").tells_apart for gpu in ("h200", "h100")}
    timed = [(one.gpu, one.workload, one.predicted_us, one.measured_us) for one in timed_orders(page)]
    found = gains.of_orders(timed, apart)
    entries = [one.entry() for one in found if one.entry()]
    assert len(entries) == 3 and all(entry in text for entry in entries)
    assert not any(one.entry() for one in gains.of_amd(evidence_of("mi300x", "time").tells_apart)), "too few launches"


def test_an_interval_is_judged_by_launches_that_it_did_not_see():
    draw = np.random.default_rng(1)
    launch, predicted = np.repeat(np.arange(40), 3), draw.uniform(-0.4, -0.3, 120)
    sure = gains.Gains("g", "compute", launch, predicted, predicted + draw.normal(0, 0.01, 120))
    inside, used, right = sure.judged()
    assert inside > 0.85 and used == right > 50
    by_launch = gains.Gains("g", "compute", launch, predicted, predicted + np.repeat(draw.normal(0, 0.1, 40), 3))
    assert by_launch.judged()[0] < inside
    low, high = gains.interval(by_launch.error)
    assert low < np.median(by_launch.error) < high
