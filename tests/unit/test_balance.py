"""Is the balance of an order what counting workgroup by workgroup gives?"""

import dataclasses
import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swizzle_benchmarks.suite.flash_attention import attention
from swizzle_benchmarks.suite.gemm import gemm
from swizzle_sim.language import Grid, Swizzle, family, holds
from swizzle_sim.pricing.replaying import balance_of, work_along, work_per_workgroup
from swizzle_sim.pricing.scores import Balance
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.search.bench import Bench
from swizzle_sim.search.candidates import OF_XCDS, balancing_orders, family_specs
from swizzle_sim.search.strategies.halving import search_on
from swizzle_sim.search.templates import family_templates
from tests import naive, naive_balance, naive_timed
from tests.machines import cases
from xcd_model import IssueModel, Time, gpu, prepare, replay_lockstep, replay_timed

CAUSAL = {"B": 1, "H": 16, "S": 1024, "D": 64, "CAUSAL": True}


@pytest.fixture(scope="module", params=["lockstep", "timed"])
def scorer(request):
    return Scorer(attention(**CAUSAL), gpu("mi300x"), replay=request.param)


@settings(max_examples=80, deadline=None)
@given(case=cases())
def test_balance_in_lockstep_is_the_naive_one(case):
    trace, order, machine, occupancy = case
    got = replay_lockstep(prepare(trace, machine), order, workgroups_per_cu=occupancy)
    found = balance_of(got, Time(3.0, {"hbm": 3.0}))
    finish = naive.finish(trace, order, machine, occupancy)
    expected = naive_balance.balance(trace, order, machine, finish, got.turns)
    assert found.makespan == got.turns == max(found.per_xcd_finish)
    _agree(found, expected)


@settings(max_examples=60, deadline=None)
@given(case=cases(), compute_fs=st.sampled_from([1, 7 * 10**6, 900 * 10**6]))
def test_balance_in_time_is_the_naive_one(case, compute_fs):
    trace, order, machine, occupancy = case
    issue = IssueModel(2, compute_fs, 0, 0, 0)
    got = replay_timed(prepare(trace, machine), order, workgroups_per_cu=occupancy, issue=issue)
    expected = naive_timed.replay(trace, order, machine, occupancy, in_flight=2, compute_fs=compute_fs)
    finish_us = [[last / 1e9 for last in xcd] for xcd in expected.finish()]
    found = balance_of(got, Time(got.time_fs / 1e9, {"hbm": 1.0}))
    _agree(found, naive_balance.balance(trace, order, machine, finish_us, expected.time_fs / 1e9))
    slower = balance_of(got, Time(2 * got.time_fs / 1e9, {"power": 1.0}))  # power bounds the time
    assert slower.over_ideal == pytest.approx(found.over_ideal)
    assert slower.tail == pytest.approx(2 * found.tail)


def _agree(found, expected):
    assert list(found.per_xcd_instructions) == expected["per_xcd_instructions"]
    assert found.per_xcd_finish == pytest.approx(expected["per_xcd_finish"])
    assert found.ideal == pytest.approx(expected["ideal"])
    assert found.tail == pytest.approx(expected["tail"], abs=1e-9)
    assert found.over_ideal >= 1 - 1e-9


@settings(max_examples=80, deadline=None)
@given(case=cases(), data=st.data())
def test_work_of_a_workgroup_is_the_naive_one(case, data):
    trace = case[0]
    rows = data.draw(st.sampled_from([n for n in range(1, trace.n_workgroups + 1) if trace.n_workgroups % n == 0]))
    grid = Grid((rows, trace.n_workgroups // rows))
    found = work_per_workgroup(trace, grid.axes)
    instructions, touched = naive_balance.work(trace)
    for got, values in ((found.instructions, instructions), (found.touched_bytes, touched)):
        least, middles, most = naive_balance.least_middle_most(values)
        assert (got[0], got[2]) == (least, most) and got[1] in middles
    mean = sum(instructions) / len(instructions)
    assert found.variation * mean == pytest.approx(
        math.sqrt(sum((n - mean) ** 2 for n in instructions) / len(instructions))
    )
    if found.uneven:
        shares = {
            "pid_m": naive_balance.explained(instructions, lambda w: w % rows),
            "pid_n": naive_balance.explained(instructions, lambda w: w // rows),
        }
        best = max(shares.values())
        if best < 0.5 - 1e-9:
            assert found.axis == ""
        if found.axis:
            assert found.explained == pytest.approx(best) == pytest.approx(shares[found.axis])


def test_causal_attention_grows_with_the_query_block(scorer):
    work = scorer.work
    assert (work.axis, work.explained, work.trend, work.uneven) == ("pid_m", 1.0, 1.0, True)
    blocks = 1024 // 128
    expected = [2 + 2 * 2 * (block + 1) for block in range(blocks)]  # Q, O; K and V of the keys up to the diagonal
    assert list(work_along(scorer.trace, scorer.kernel.grid.axes["pid_m"])) == expected
    assert (work.instructions[0], work.instructions[2]) == (expected[0], expected[-1])


def test_the_launch_order_gives_the_last_xcd_the_heaviest_blocks(scorer):
    """8 blocks a head on 8 XCDs: XCD x gets block x of every head."""
    balance = scorer.baseline.balance
    assert list(balance.per_xcd_instructions) == [16 * (2 + 4 * (block + 1)) for block in range(8)]
    assert list(balance.per_xcd_finish) == sorted(balance.per_xcd_finish)
    assert balance.heaviest_over_mean == pytest.approx(34 / 20)
    assert balance.last_over_first > 3 and balance.over_ideal > 1.3
    even = scorer.score(Swizzle.parse(family("row"))).balance
    assert even.heaviest_over_mean == 1 and even.last_over_first < 1.1


def test_fewer_workgroups_than_cus_leave_cus_idle_from_the_start():
    balance = Scorer(
        gemm(M=512, N=512, K=64), gpu("mi300x"), replay="lockstep"
    ).baseline.balance  # 4 workgroups, 304 CUs
    assert balance.tail == balance.makespan
    assert balance.over_ideal == pytest.approx(304 / 4)
    assert balance.last_over_first == math.inf


def test_the_same_workgroups_on_fewer_xcds_are_balanced_alike():
    """Relabelling identical XCDs moves their numbers and keeps makespan, ideal and tail."""
    scorer = Scorer(attention(**CAUSAL), dataclasses.replace(gpu("mi300x"), mall=None), replay="lockstep")
    pids = np.arange(scorer.kernel.grid.num_pids)
    turned = scorer.score_order(pids // 8 * 8 + (pids + 3) % 8, baseline_us=None).balance
    plain = scorer.baseline.balance
    assert isinstance(plain, Balance)
    assert turned.per_xcd_instructions == (*plain.per_xcd_instructions[3:], *plain.per_xcd_instructions[:3])
    assert (turned.makespan, turned.ideal, turned.tail) == (plain.makespan, plain.ideal, plain.tail)


def test_orders_that_balance_are_tried_where_work_is_uneven_and_nowhere_else():
    device = gpu("mi300x")
    even = set(family_specs(attention(**{**CAUSAL, "CAUSAL": False}), device))
    causal = set(family_specs(attention(**CAUSAL), device))
    more = causal - even
    assert even < causal and {"longest_first(size=16)", "contiguous+longest_first(size=2)"} <= more
    assert {re.sub(r"\(.*?\)|contiguous\+", "", spec) for spec in more} == {"longest_first", "paired"}


@pytest.mark.parametrize(
    ("axis", "trend", "expected"),
    [
        ("pid_m", 1.0, {"longest_first", "paired"}),
        ("pid_m", 0.1, {"longest_first", "paired"}),
        ("pid_m", -1.0, {"paired"}),  # the launch order begins with the longest already
        ("pid_n", 1.0, {"reverse", "contiguous+reverse", "reverse+group_m", "contiguous+reverse+group_m"}),
        ("pid_n", -1.0, set()),
        ("", math.nan, {"reverse", "contiguous+reverse", "reverse+group_m", "contiguous+reverse+group_m"}),
    ],
)
def test_orders_that_balance_follow_the_axis_of_the_work(axis, trend, expected):
    rising = Scorer(attention(**CAUSAL), gpu("mi300x")).work
    work = dataclasses.replace(rising, axis=axis, trend=trend, explained=1.0)
    found = balancing_orders(Grid((8, 16)), work)
    kinds = {re.sub(r"\([^()]*\)", "", spec) for spec in found}
    assert {
        kind.replace("contiguous+longest", "longest").replace("contiguous+paired", "paired") for kind in kinds
    } == expected
    assert all(holds(spec, Grid((8, 16)), 8) for spec in found)
    rows = dataclasses.replace(work, axis="pid", trend=1.0)
    assert balancing_orders(Grid((100,)), rows) == ["reverse", "contiguous+reverse"]


def test_on_one_xcd_each_order_is_listed_once_and_nothing_is_placed():
    found = list(family_specs(attention(**CAUSAL), gpu("h200")))
    assert {"longest_first(size=1)", "group_m(size=8)", "paired(size=1)"} <= set(found) and len(set(found)) == len(
        found
    )
    assert not any(part.partition("(")[0] in OF_XCDS for spec in found for part in spec.split("+"))


def test_a_search_goes_on_at_the_bound_where_even_work_breaks_the_tie():
    bench = Bench(Scorer(attention(B=1, H=64, S=2048, D=64, CAUSAL=True), gpu("mi300x")))
    known = {one.name: one for one in family_templates(bench.main.kernel, bench.main.gpu)}
    found = search_on(bench, [known[name] for name in ("panel_snake", "row", "longest_first")], evaluations=9)
    scored = [a for a in found.attempts if a.score]
    at_bound = {a.name: a.score.balance.over_ideal for a in scored if a.score.distance_to_bound < 1e-9}
    assert len({name.partition("(")[0] for name in at_bound}) > 1, "several kinds of order reach the bound"
    assert at_bound[found.best.name] == min(at_bound.values()) < found.baseline.score.balance.over_ideal
    assert next(iter(at_bound)) != found.best.name, "a later one took the place of the first"
