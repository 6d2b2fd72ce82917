"""Do workgroups wait for each other in a CU's queues as the weights of all their states say, and do steps know it?"""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swizzle_sim.kernels import kernel
from swizzle_sim.queues import longer_by, queued_fs, step_time
from swizzle_sim.scoring import Scorer
from tests import naive_queues
from tests.machines import gemm_trace
from xcd_model import IssueModel, gpu

H200 = gpu("h200")
TIMES = st.integers(1, 1000)


@given(st.lists(TIMES, min_size=1, max_size=3), st.integers(0, 3000), st.integers(1, 6))
def test_mean_values_are_those_of_all_states(services, elsewhere, n):
    wanted = naive_queues.step_time(services, elsewhere, n)
    assert step_time(services, float(elsewhere), n) == pytest.approx(float(wanted), rel=1e-9)


@given(st.tuples(TIMES, TIMES), st.integers(1, 4000), st.integers(1, 8))
def test_a_step_takes_longer_for_others_and_never_less_than_a_busy_unit(services, alone, n):
    assert longer_by(services, alone, 1) == pytest.approx(0, abs=1e-6)
    added = longer_by(services, alone, n)
    assert 0 <= added <= sum(services) * n
    mixed = max(alone, n * max(services)) + added
    assert mixed >= max(alone, n * max(services))


def test_two_that_need_a_unit_half_of_the_time_meet_a_quarter_of_the_time():
    assert step_time([50.0], 50.0, 2) == 50 + 50 * 1.5
    assert longer_by((50.0,), 100.0, 2) == 25
    assert step_time([0.0, 0.0], 0.0, 3) == 0


def issue_of(**given):
    return IssueModel(in_flight=4, compute_fs=50_000_000, step=2, **given)


def test_a_step_goes_out_later_by_what_its_loads_and_products_meet():
    trace = gemm_trace(512, 512, 512, 64, 64, 64)
    times = [queued_fs(issue_of(), H200, trace, running) for running in (1, 2, 3, 4)]
    assert times[0] == 0 and times[1] > 0
    fill = 128 * 128 / H200.limits.fill_bytes_per_cycle / H200.clock_mhz * 1e9  # two tiles of 64 x 64 fp16
    loads = fill + 1e6 * (H200.l2.latency_ns + H200.limits.copy_ns)
    for issue, alone in ((issue_of(), loads), (issue_of(after_products=True), loads + 10**8)):
        wanted = round(longer_by((fill, 1e8), alone, 2))
        assert queued_fs(issue, H200, trace, 2) == pytest.approx(wanted, rel=1e-3)
    assert queued_fs(issue_of()._replace(in_flight=8), H200, trace, 2) != times[1]


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
