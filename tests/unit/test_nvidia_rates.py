"""Are workgroups in step with those that load the same tiles, and is a load then taken in as slowly as all together?"""

import dataclasses
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from swizzle_sim.pricing.issuing import longer_by, queued_fs, step_time
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.workload.kernels import kernel
from tests import naive_coalescer, naive_in_step, naive_queues
from tests.machines import cases, gemm_trace, sides
from xcd_model import IssueModel, TraceBuilder, gpu, prepare, replay_timed
from xcd_model.analysis.timing import timed_time
from xcd_model.errors import SpecError
from xcd_model.nvidia.rates import fill_time, read_time, requests_by_readers, share_in_step, share_sent
from xcd_model.spec.nvidia import L2Partitions

ROWS, COLUMNS = 6, 8  # of tiles
GEMM = gemm_trace(ROWS * 16, COLUMNS * 16, 64, 16, 16, 16)
BY_ROW = np.arange(ROWS * COLUMNS)
BY_COLUMN = BY_ROW.reshape(ROWS, COLUMNS).T.reshape(-1)


def loads(lines_of_workgroup, *, beside=0):
    """A workgroup loads its lines of one tensor, one by one, and the first ``beside`` of another."""
    build = TraceBuilder(n_workgroups=len(lines_of_workgroup), line_bytes=128)
    one, other = (build.array(name, rows=64, cols=64, item_bytes=2) for name in "AB")
    for lines in zip(*lines_of_workgroup, strict=True):
        build.step(build.read(one, row=np.array(lines)[:, None], col=0, rows=1, cols=64))
    for line in range(beside):
        build.step(build.read(other, row=line, col=0, rows=1, cols=64))
    return build.trace()


@given(cases(), st.integers(1, 9), st.integers(0, 40))
def test_the_share_is_that_of_pairs_one_by_one(case, running, l2_lines):
    trace, order, *_ = case
    share = share_in_step(trace, order, running, l2_lines)
    assert share == naive_in_step.share_in_step(trace, order, running, l2_lines)
    assert 0 <= share <= 1


def test_all_in_step_and_none():
    apart, same = [[2 * w, 2 * w + 1] for w in range(6)], [[0, 1]] * 6
    assert share_in_step(loads(apart), np.arange(6), 6, 0) == 0
    assert share_in_step(loads(same), np.arange(6), 6, 0) == 1
    assert share_in_step(loads(same), np.arange(6), 1, 0) == 0, "nobody runs beside it"
    assert share_in_step(loads(same), np.arange(6), 6, 1) == 1
    assert share_in_step(loads(same), np.arange(6), 6, 2) == 0, "the L2 has room for all that run: nobody waits"


def test_what_is_loaded_once_beside_an_operand_that_is_loaded_often_keeps_few_in_step():
    apart = [[4 * w + i for i in range(4)] for w in range(6)]
    assert share_in_step(loads(apart, beside=1), np.arange(6), 6, 0) == Fraction(1, 4)


def test_a_row_of_tiles_shares_a_and_a_column_shares_b():
    """Of 8 that run, a row shares its rows of A among all; by column 6 share columns of B, and 2 of them rows of A."""
    assert share_in_step(GEMM, BY_ROW, COLUMNS, 0) > share_in_step(GEMM, BY_COLUMN, COLUMNS, 0)
    assert share_in_step(GEMM, BY_ROW[:COLUMNS], COLUMNS, 0) == 1
    assert share_in_step(GEMM, BY_COLUMN[:ROWS], ROWS, 0) == 1


def test_a_load_takes_from_what_it_takes_alone_to_what_it_takes_of_all_that_run():
    order, how = np.arange(6), {"running": 6, "cus": 132, "l2_lines": 0, "of_l2": 5}
    same, apart = loads([[0]] * 6), loads([[w] for w in range(6)])
    assert fill_time(same, order, alone=10, **how) == 30
    assert fill_time(apart, order, alone=10, **how) == 10
    half = loads([[0], [0], [0], [1], [2], [3]])  # three of six are in step with two of five
    assert fill_time(half, order, alone=10, **how) == 10 + 20 // 5
    assert fill_time(same, order, alone=10, **how | {"cus": 3}) == 15, "two workgroups on each of three"
    assert fill_time(same, order, alone=10, **how | {"running": 4}) == 20
    assert fill_time(same, order, alone=40, **how) == 40, "an L2 that gives out more than they take in"


def test_workgroups_that_touch_nothing_run_beside_nobody():
    same = loads([[0]] * 6)
    every_other = dataclasses.replace(same, start=np.append(np.repeat(same.start[:-1], 2), same.start[-1]))
    assert every_other.n_workgroups == 12
    assert share_in_step(every_other, np.arange(12), 12, 0) == 1


# ---- Do reads of one line by SMs of one GPC go to the L2 as one, as often as they are under way together?
H200 = gpu("h200")
PAIRS = np.array([0, 0, 1, 1, 2, 2])  # GPCs of six SMs


@given(cases(), st.integers(1, 9), st.data())
def test_a_read_takes_the_share_that_is_sent_of_its_time(case, running, data):
    trace, order, machine, _ = case
    joined = sides(machine.l2.line_bytes, machine.cus_per_xcd).filter(lambda one: one.reads_as_one is not None)
    partitions = data.draw(joined)
    machine = dataclasses.replace(machine, mall=None, l2_partitions=partitions)
    got = read_time(
        trace,
        order,
        running=running,
        xcds=machine.xcds,
        cus=machine.cus_per_xcd,
        partitions=partitions,
        request_bytes=machine.l2.read_request_bytes,
        alone=10**6,
    )
    assert got == naive_coalescer.read_time(trace, order, machine, running=running, alone=10**6)
    assert 0 < got <= 10**6


@pytest.mark.parametrize(
    ("lines", "by_readers"),
    [
        ([[0]] * 6, [0, 0, 6 * 4]),  # two of each GPC
        ([[w] for w in range(6)], [0, 6 * 4]),
        ([[0], [0], [0], [1], [2], [2]], [0, 2 * 4, 4 * 4]),
        ([[0, 0]] * 6, [0, 0, 12 * 4]),  # a workgroup that loads it twice counts once
    ],
)
def test_readers_are_counted_by_gpc(lines, by_readers):
    got = requests_by_readers(loads(lines), np.arange(6), running=6, gpc=PAIRS, request_bytes=32)
    assert got.tolist() == by_readers


def test_so_many_go_as_one_as_are_under_way_and_no_more_than_four():
    assert share_sent(np.array([0, 10]), 4, 0.5) == 1
    assert share_sent(np.array([0, 0, 10]), 4, 0.5) == Fraction(2, 3)
    assert share_sent(np.array([0, 0, 10]), 4, 1.0) == Fraction(1, 2)
    assert share_sent(np.array([0] * 18 + [10]), 4, 0.5) == Fraction(1, 4)
    assert share_sent(np.array([0, 10, 10]), 4, 1.0) == Fraction(3, 4)
    assert share_sent(np.zeros(1), 4, 1.0) == 1, "a launch that loads nothing"


def test_on_an_h200_tiles_of_64_whose_neighbours_share_operands_are_faster_than_those_that_share_none():
    side, issue = 32, IssueModel(in_flight=4, compute_fs=10**7, step=2)
    trace = gemm_trace(64 * side, 64 * side, 1024, 64, 64, 64)
    orders = {"row": np.arange(side * side), "scatter": np.random.default_rng(0).permutation(side * side)}
    alone = dataclasses.replace(H200.l2_partitions, reads_as_one=None, under_way=None)

    def run(order, partitions):
        plan = prepare(trace, dataclasses.replace(H200, l2_partitions=partitions))
        return replay_timed(plan, orders[order], workgroups_per_cu=4, issue=issue)

    row, scatter = (run(order, H200.l2_partitions) for order in orders)
    assert row.l2_read_fs < 0.9 * scatter.l2_read_fs
    assert row.time_fs < 0.95 * run("row", alone).time_fs
    time = timed_time(row, H200, issue)
    assert time.by_resource_us["l2"] <= time.total_us, "no busier than the kernel is long"
    assert run("row", alone).l2_read_fs == run("scatter", alone).l2_read_fs > scatter.l2_read_fs


@pytest.mark.parametrize("given", [{"reads_as_one": 4}, {"under_way": 0.1}, {"reads_as_one": 4, "under_way": 1.5}])
def test_both_numbers_are_given_or_neither(given):
    with pytest.raises(SpecError):
        L2Partitions(coherence_bits=128, cu_groups=2, remote_ns=1.0, **given)


# ---- Do workgroups wait for each other in a CU's queues as the weights of all their states say, and do steps know it?
TIMES = st.integers(1, 1000)


@given(st.lists(TIMES, min_size=1, max_size=3), st.integers(0, 3000), st.integers(1, 6))
def test_mean_values_are_those_of_all_states(services, elsewhere, n):
    wanted = naive_queues.step_time(services, elsewhere, n)
    assert step_time(services, float(elsewhere), n) == pytest.approx(float(wanted), rel=1e-9)


@given(st.tuples(TIMES, TIMES), st.integers(1, 4000), st.integers(1, 8))
def test_a_step_takes_the_mean_or_what_it_takes_by_itself(services, alone, n):
    elsewhere, by_itself = max(0, alone - sum(services)), max(alone, n * max(services))
    one, all_of_them = (naive_queues.step_time(services, elsewhere, among) for among in (1, n))
    assert longer_by(services, alone, 1) == pytest.approx(max(0, alone - by_itself), abs=1e-6)
    wanted = max(float(alone + all_of_them - one), by_itself)
    assert by_itself + longer_by(services, alone, n) == pytest.approx(wanted, rel=1e-9)


def test_two_that_need_a_unit_half_of_the_time_meet_a_quarter_of_the_time():
    assert step_time([50.0], 50.0, 2) == 50 + 50 * 1.5
    assert longer_by((50.0,), 100.0, 2) == 25
    assert longer_by((100.0, 1.0), 100.0, 4) == 0  # the busiest queue serves all in 400
    assert step_time([0.0, 0.0], 0.0, 3) == 0


@pytest.mark.parametrize("running", [1, 2, 3, 6])
@pytest.mark.parametrize("after_products", [True, False])
def test_the_replay_takes_the_mean_of_queues_that_serve_all_at_once(running, after_products):
    """One SM, whose workgroups load a tile of their own again and again, and a memory that is no slower than the L2."""
    l2 = dataclasses.replace(H200.l2, read_bytes_per_cycle=10**6)
    device = dataclasses.replace(H200, cus_per_xcd=1, l2=l2, l1=None, l2_partitions=None, compute_spread=0.0)

    def period(added):
        ends = []
        for steps in (16, 48):
            trace = own_tiles(running, steps)
            issue = issue_of(after_products=after_products)._replace(in_flight=2 if after_products else 4)
            issue = issue._replace(step_fs=queued_fs(issue, device, trace, running) if added else 0)
            plan, order = prepare(trace, device), np.arange(running)
            ends.append(replay_timed(plan, order, workgroups_per_cu=running, issue=issue).time_fs)
        return (ends[1] - ends[0]) / 32

    fill = 16384 / H200.limits.fill_bytes_per_cycle / H200.clock_mhz * 1e9
    alone = 1e6 * (H200.l2.latency_ns + H200.limits.copy_ns) + fill + after_products * 1e8
    mixed = alone + naive_queues.step_time((int(fill), 10**8), int(max(0, alone - fill - 1e8)), running)
    mixed -= naive_queues.step_time((int(fill), 10**8), int(max(0, alone - fill - 1e8)), 1)
    busy, by_itself = running * max(fill, 1e8), max(alone, running * max(fill, 1e8))
    found, without = period(True), period(False)
    assert without == pytest.approx(by_itself, rel=0.02)
    if busy <= alone:  # else a queue that is busy all the time hides some of it
        assert found == pytest.approx(float(mixed), rel=0.02)
    assert without <= found <= 1.02 * mixed


def own_tiles(workgroups, steps):
    build = TraceBuilder(n_workgroups=workgroups, line_bytes=H200.l2.line_bytes)
    a, b = (build.array(name, rows=64 * workgroups, cols=64, item_bytes=2) for name in "ab")
    mine = np.arange(workgroups) * 64
    for _ in range(steps):
        build.step(*(build.read(one, row=mine, col=0 * mine, rows=64, cols=64) for one in (a, b)))
    return build.trace()


def issue_of(**given):
    return IssueModel(in_flight=4, compute_fs=50_000_000, step=2, **given)


def test_a_step_goes_out_later_by_what_its_loads_and_products_meet():
    trace = gemm_trace(512, 512, 512, 64, 64, 64)
    times = [queued_fs(issue_of(), H200, trace, running) for running in (1, 2, 3, 4)]
    assert times[0] == 0 and times[1] > 0
    fill = 128 * 128 / H200.limits.fill_bytes_per_cycle / H200.clock_mhz * 1e9  # two tiles of 64 x 64 fp16
    loads = fill + 1e6 * (H200.l2.latency_ns + H200.limits.copy_ns)
    at_products = issue_of(after_products=True)._replace(in_flight=2)
    for issue, alone in ((issue_of(), loads), (at_products, loads + 10**8)):
        wanted = round(longer_by((fill, 1e8), alone, 2))
        assert queued_fs(issue, H200, trace, 2) == pytest.approx(wanted, rel=1e-3) and wanted > 0
    for deep in (issue_of()._replace(in_flight=8), issue_of(after_products=True)):
        assert queued_fs(deep, H200, trace, 2) == 0


@pytest.mark.parametrize(("name", "waits"), [("h200", True), ("mi300x", False)])
def test_only_where_it_is_known_how_fast_a_cu_takes_in(name, waits):
    device = gpu(name)

    def issue(side):
        work = kernel("gemm", M=side, N=side, K=512, BLOCK_M=128, BLOCK_N=128, BLOCK_K=64)
        pipelined = {"instructions_in_flight": 4, "loads_per_step": 2}
        pipelined |= {"vgprs": 128, "lds_bytes": 32 << 10, "threads": 256}
        scorer = Scorer(dataclasses.replace(work, resources=dataclasses.replace(work.resources, **pipelined)), device)
        assert scorer.occupancy > 1
        return scorer.issue_model

    assert issue(512).step == issue(4096).step == 2
    assert (issue(4096).step_fs > issue(512).step_fs) is waits  # 16 workgroups have a CU each, 1024 have not
