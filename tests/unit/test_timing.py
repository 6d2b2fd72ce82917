"""Is the roofline the formula one gets by hand?"""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.machines import small_gpu
from xcd_model import IssueModel, Traffic, compute_fs, roofline
from xcd_model.errors import ReplayError
from xcd_model.replay.traffic import COLUMNS

GPU = dataclasses.replace(
    small_gpu(xcds=2, cus=4),
    clock_mhz=1000.0,
    sustained_clock_mhz=1000.0,
    fabric_bytes_per_cycle=64,
    peak_tflops={"fp16": 8.0},
)
# 8 TFLOPS over 8 CUs: 1e6 flop a microsecond a CU; L2 2048 B/cycle; fabric 64 B/cycle; MALL 11 900, HBM 4100 GB/s
LATENCY_US = 2 * GPU.hbm.latency_ns / 1e3


def traffic(*bins, turns_per_bin=1):
    """Traffic of bins; each bin is a list of an XCD's counts by name."""
    table = [[[xcd.get(name, 0) for name in COLUMNS] for xcd in bin_] for bin_ in bins]
    return Traffic(np.array(table, np.int64), turns_per_bin, len(bins) * turns_per_bin, 128, 64)


def time(t, machine=GPU, flops=1e6, window=1):
    return roofline(t, machine, IssueModel(window, compute_fs(machine, flops_per_instruction=flops, dtype="fp16")))


def test_compute_bound():
    """Three turns of 4 CUs with 1e6 flop each: 1 us a turn; the other XCD idles along."""
    got = time(traffic(*[[{"instructions": 4}, {"instructions": 2}]] * 3))
    assert got.limiter == "compute"
    assert got.by_resource_us["compute"] == pytest.approx(3)
    assert got.total_us == pytest.approx(3 + LATENCY_US)
    assert got.latency_us == LATENCY_US


# 4 SIMDs of 25 lanes at 1 GHz: 1e5 lane instructions a microsecond a CU
VECTOR_GPU = dataclasses.replace(GPU, limits=dataclasses.replace(GPU.limits, simds_per_cu=4, lanes_per_simd=25))


@pytest.mark.parametrize(
    ("vector_ops", "workgroups", "us"),
    [(0, 1, 1), (5e4, 1, 1.5), (2e5, 1, 3), (0, 2, 1), (5e4, 2, 1), (2e5, 2, 2)],
)
def test_one_workgroup_does_one_after_the_other_and_two_share_the_units(vector_ops, workgroups, us):
    work = {"flops_per_instruction": 1e6, "dtype": "fp16", "vector_ops_per_instruction": vector_ops}
    assert compute_fs(VECTOR_GPU, **work, workgroups_per_cu=workgroups) == us * 1e9
    one = traffic([{"instructions": 1}, {}])
    got = roofline(one, VECTOR_GPU, IssueModel(1, compute_fs(VECTOR_GPU, **work, workgroups_per_cu=workgroups)))
    assert got.by_resource_us["compute"] == pytest.approx(us)


@pytest.mark.parametrize("workgroups", [1, 2, 5])
def test_units_that_do_not_work_side_by_side_take_turns_however_many_workgroups_there_are(workgroups):
    takes_turns = dataclasses.replace(
        VECTOR_GPU, limits=dataclasses.replace(VECTOR_GPU.limits, matrix_beside_vector=False)
    )
    work = {"flops_per_instruction": 1e6, "dtype": "fp16", "vector_ops_per_instruction": 5e4}
    assert compute_fs(takes_turns, **work, workgroups_per_cu=workgroups) == 1.5e9
    unknown = dataclasses.replace(GPU, limits=dataclasses.replace(GPU.limits, lanes_per_simd=None))
    assert compute_fs(unknown, **work, workgroups_per_cu=workgroups) == 1e9  # vector work is free there


# fills of 128 B, writes of 64 B; what the Infinity Cache holds is free for the HBM, the busiest XCD bounds the fabric
HELD = {"read_misses": 20000, "mall_requests": 20000}


@pytest.mark.parametrize(
    ("xcds", "change", "limiter", "us"),
    [
        (
            [HELD | {"read_requests": 10000, "mall_hits": 4000, "writebacks": 2000}] * 2,
            *({"fabric_bytes_per_cycle": 4096}, "hbm", (32000 * 128 + 4000 * 64) / 4.1e6),
        ),
        (
            [HELD | {"mall_hits": 20000, "writebacks": 500}] * 2,
            *({"fabric_bytes_per_cycle": 65536}, "mall", (40000 * 128 + 1000 * 64) / 11.9e6),
        ),
        (
            [{"read_misses": 1000, "writebacks": 100}, {"read_misses": 10}],
            *({"mall": None}, "fabric", (1000 * 128 + 100 * 64) / 64e3),
        ),
        ([{"read_requests": 1600, "write_requests": 3200}, {}], {}, "l2", (1600 * 128 + 3200 * 64) / 2048e3),
    ],
)
def test_what_is_busiest_limits(xcds, change, limiter, us):
    got = time(traffic(xcds), dataclasses.replace(GPU, **change))
    assert got.limiter == limiter and got.by_resource_us[limiter] == pytest.approx(us)
    assert got.total_us == got.by_resource_us[limiter] + LATENCY_US
    assert "mall" not in change or got.by_resource_us["mall"] == 0


def test_windows_overlap_what_is_in_flight_and_no_more():
    """A turn of compute, a turn of memory: apart they add up, in one window the slower hides the other."""
    compute, memory = [{"instructions": 4}, {}], [{"read_misses": 1000}, {}]
    bare = dataclasses.replace(GPU, mall=None)
    apart, together = (time(traffic(compute, memory), bare, window=w) for w in (1, 2))
    assert apart.total_us == pytest.approx(1 + 2 + LATENCY_US)
    assert together.total_us == pytest.approx(2 + LATENCY_US)


BUSY, ONE = [{"instructions": 4}, {}], [{"instructions": 1}, {}]


@pytest.mark.parametrize(
    ("found", "window", "us"),
    [
        (traffic(ONE), 1, 1),  # one busy CU is as slow as all of them
        (traffic([{"instructions": 8}, {}]), 1, 2),  # two workgroups a CU
        (traffic(*[BUSY] * 5), 2, 5),
        (traffic(*[[{"instructions": 16}, {}]] * 3, turns_per_bin=4), 2, 12),  # a window is at least a bin
        (dataclasses.replace(traffic(BUSY, ONE, turns_per_bin=4), turns=5), 8, 5),  # and the last may be short
        (traffic(BUSY, BUSY, *[[{}, {"instructions": 1}]] * 2), 4, 2),  # a turn in which an XCD idles costs it nothing
    ],
)
def test_what_a_window_computes_is_that_of_its_turns(found, window, us):
    assert time(found, window=window).by_resource_us["compute"] == pytest.approx(us)


counts = st.integers(0, 10**6)


@given(
    column=st.sampled_from(COLUMNS[:-1]),  # more Infinity Cache hits make it faster
    base=st.lists(st.tuples(*[counts] * 5), min_size=1, max_size=6),
    more=st.integers(0, 10**6),
    window=st.integers(1, 4),
)
def test_more_of_anything_is_never_faster(column, base, more, window):
    bins = []
    for instructions, requests, misses, held, writebacks in base:
        xcd = {"instructions": instructions, "read_requests": requests, "writebacks": writebacks}
        bins.append([xcd | {"read_misses": misses, "mall_requests": misses, "mall_hits": min(held, misses)}, {}])
    before = time(traffic(*bins), window=window)
    bins[0][0] = bins[0][0] | {column: bins[0][0].get(column, 0) + more}
    after = time(traffic(*bins), window=window)
    assert after.total_us >= before.total_us * (1 - 1e-12)
    assert sum(after.by_resource_us.values()) + after.latency_us == pytest.approx(after.total_us)


def test_a_dtype_without_a_rate_is_refused():
    with pytest.raises(ReplayError, match="no peak rate for fp32; it has fp16"):
        compute_fs(GPU, flops_per_instruction=1, dtype="fp32")
