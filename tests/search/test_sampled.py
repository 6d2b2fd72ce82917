"""Is the hit rate of a sample that of the same XCDs in a replay of all of them?"""

from dataclasses import replace

import numpy as np
import pytest

from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.search.bench import sampled_hit_rate, sampled_xcds
from swizzle_sim.search.what_if import what_if
from swizzle_sim.workload.kernels import kernel
from xcd_model.replay.traffic import READ_MISSES, READ_REQUESTS, WRITE_MISSES, WRITE_REQUESTS
from xcd_model.spec.nvidia import L2Partitions


def rate_of(traffic, xcds):
    counts = traffic.per_xcd[list(xcds)].sum(axis=0)
    return 1 - (counts[READ_MISSES] + counts[WRITE_MISSES]) / (counts[READ_REQUESTS] + counts[WRITE_REQUESTS])


@pytest.mark.parametrize("programs", [None, 24])
@pytest.mark.parametrize("name", ["gemm", "stencil_2d"])
def test_a_sample_is_a_part_of_the_replay(small, tight, name, programs):
    work = replace(small if name == "gemm" else kernel("stencil_2d", M=512, N=512), programs=programs)
    scorer = Scorer(work, replace(tight, l1i=None), replay="lockstep")
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(work.grid.num_pids)
        assert sampled_hit_rate(scorer, order) == pytest.approx(rate_of(scorer.traffic(order), (0, 4)), abs=1e-12)


def test_few_xcds_are_all_sampled(small, tight):
    assert sampled_xcds(1) == (0,) and sampled_xcds(2) == (0, 1) and sampled_xcds(6) == (0, 3)
    scorer = Scorer(small, what_if(tight, {"xcds": 2}), replay="lockstep")
    order = np.random.default_rng(0).permutation(256)
    assert sampled_hit_rate(scorer, order) == pytest.approx(scorer.traffic(order).l2_hit_rate, abs=1e-12)


def test_an_l2_of_two_sides_is_sampled_whole(small, tight):
    sides = L2Partitions(coherence_bits=tight.l2.line_bytes * 5, cu_groups=2, remote_ns=90.0)
    scorer = Scorer(small, replace(tight, mall=None, l1i=None, l2_partitions=sides), replay="lockstep")
    order = np.random.default_rng(0).permutation(256)
    traffic = scorer.traffic(order)
    assert traffic.remote_hits > 0
    assert sampled_hit_rate(scorer, order) == pytest.approx(rate_of(traffic, (0, 4)), abs=1e-12)


def test_xcds_without_work_miss_nothing(tight):
    lone = kernel("gemm", M=64, N=64, K=64, BLOCK_M=64, BLOCK_N=64)  # one workgroup, on XCD 0 or on one not sampled
    scorer = Scorer(lone, replace(tight, dispatch_offset=1), replay="lockstep")
    assert sampled_hit_rate(scorer, np.arange(1)) == 1.0
