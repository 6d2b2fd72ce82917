"""Do workgroups wait for each other in a CU's queues as the weights of all their states say, and do steps know it?"""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from swizzle_sim.pricing.issuing import longer_by, queued_fs, step_time
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.workload.kernels import kernel
from tests import naive_queues
from tests.machines import gemm_trace
from xcd_model import IssueModel, TraceBuilder, gpu, prepare, replay_timed

H200 = gpu("h200")
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
