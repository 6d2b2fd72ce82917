"""Is the reuse analysis what a slow and plain reading of the schedule gives?"""

import dataclasses

import numpy as np
import pytest

from swizzle_agent.bottleneck import KINDS, bottleneck_of, reuse_of
from swizzle_benchmarks.suite.gemm import gemm
from swizzle_sim.scoring import Scorer
from swizzle_sim.swizzle import Swizzle, family
from tests.agent.naive_reuse import naive_reuse


def tiny(mi300x, cus, kibibytes):
    """A GPU of two XCDs whose L2 is small."""
    l2 = dataclasses.replace(mi300x.l2, size_bytes=kibibytes * 1024)
    return dataclasses.replace(mi300x, xcds=2, cus_per_xcd=cus, l2=l2)


@pytest.mark.parametrize("spec", ["identity", "contiguous+group_m(size=2)", "column"])
@pytest.mark.parametrize(("cus", "kibibytes", "programs"), [(1, 64, None), (3, 128, None), (2, 64, 5)])
def test_against_the_naive_reading(mi300x, spec, cus, kibibytes, programs):
    device = tiny(mi300x, cus, kibibytes)
    one = dataclasses.replace(gemm(M=64, N=80, K=512, BLOCK_M=16, BLOCK_N=16, BLOCK_K=32), programs=programs)
    scorer = Scorer(one, device, replay="lockstep")
    order = scorer.permutation(Swizzle.parse(family(spec)))
    found = reuse_of(scorer.plan, order, workgroups_per_cu=1, grid=one.grid)
    touches, misses = np.zeros((3, len(KINDS))), np.zeros((3, len(KINDS)))
    for tensor, kind, missed in naive_reuse(scorer.plan.trace, order, device, 1, 5, programs or order.size):
        touches[tensor, kind] += 1
        misses[tensor, kind] += missed
    assert found.sampled_fraction == 1
    assert np.array_equal(found.touches, touches)
    assert np.array_equal(found.misses, misses)
    assert misses[:, 2:].sum() > 0 or kibibytes > 64  # the small L2 does lose lines before they are used again
    assert found.misses_of_workgroup.sum() == misses.sum()


def test_a_sample_stands_for_the_whole(mi300x, monkeypatch):
    one = gemm(M=2048, N=2048, K=512)
    scorer = Scorer(one, mi300x, replay="lockstep")
    order = np.arange(one.grid.num_pids)
    whole = reuse_of(scorer.plan, order, workgroups_per_cu=1, grid=one.grid)
    monkeypatch.setattr("swizzle_agent.bottleneck.MAX_SAMPLES", 1 << 16)
    part = reuse_of(scorer.plan, order, workgroups_per_cu=1, grid=one.grid)
    assert part.sampled_fraction < 0.2 and whole.sampled_fraction == 1
    assert part.touches.sum() == pytest.approx(whole.touches.sum(), rel=0.02)
    assert part.copies == pytest.approx(whole.copies, rel=0.02)
    # all of L2 is larger than what these workgroups touch: cold misses alone, as the replay counts them
    assert whole.misses.sum() == scorer.traffic(order).l2_misses


def test_the_report_names_the_culprit(mi300x):
    scorer = Scorer(gemm(), mi300x, replay="lockstep")
    report = bottleneck_of(scorer, np.arange(1024), scorer.baseline, best=0.8).as_dict()
    assert "tensor A" in report["notes"][0] and "another XCD" in report["notes"][0]
    assert report["xcds_that_fetch_a_line"] == {"A": 8.0, "B": 1.0, "C": 1.0}
    assert sum(t["share_of_misses_pct"] for t in report["tensors"]) == pytest.approx(100, abs=0.1)
    assert report["l2_hit_rate_pct"] == report["baseline_pct"] < report["bound_pct"]
    assert len(report["per_xcd_l2_hit_rate_pct"]) == 8
    bare = bottleneck_of(scorer, np.arange(1024), scorer.baseline, best=0.8).as_dict(hardware=False)
    assert "XCD" not in str(bare) and "hbm" not in str(bare)
