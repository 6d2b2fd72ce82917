"""Is the reuse analysis what a slow and plain reading of the schedule gives?"""

import dataclasses
from dataclasses import replace

import numpy as np
import pytest

from swizzle_benchmarks.suite.gemm import gemm
from swizzle_benchmarks.suite.layer_norm import layer_norm
from swizzle_benchmarks.suite.spmv import spmv
from swizzle_benchmarks.suite.transpose import transpose
from swizzle_sim.language import Swizzle, family
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.report.bottleneck import KINDS, bottleneck_of, reuse_of
from tests.agent.naive_reuse import naive_reuse
from xcd_model import gpu


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


def test_a_sample_stands_for_the_whole(mi300x, monkeypatch):
    one = gemm(M=2048, N=2048, K=512)
    scorer = Scorer(one, mi300x, replay="lockstep")
    order = np.arange(one.grid.num_pids)
    whole = reuse_of(scorer.plan, order, workgroups_per_cu=1, grid=one.grid)
    monkeypatch.setattr("swizzle_sim.report.bottleneck.MAX_SAMPLES", 1 << 16)
    part = reuse_of(scorer.plan, order, workgroups_per_cu=1, grid=one.grid)
    assert part.sampled_fraction < 0.2 and whole.sampled_fraction == 1
    assert part.touches.sum() == pytest.approx(whole.touches.sum(), rel=0.02)
    assert part.copies == pytest.approx(whole.copies, rel=0.02)
    # all of L2 is larger than what these workgroups touch: cold misses alone, as the replay counts them
    assert whole.misses.sum() == scorer.traffic(order).l2_misses


def test_the_report_names_the_culprit(mi300x):
    scorer = Scorer(gemm(), mi300x, replay="lockstep")
    report = bottleneck_of(scorer, np.arange(1024), scorer.baseline, times=True)
    of_a = report["misses_pct"]["A"]
    assert max(of_a, key=of_a.get) == "touched elsewhere" and of_a["touched elsewhere"] > 50
    assert report["xcds_that_touch_a_line"] == {"A": 8.0}
    assert sum(sum(kinds.values()) for kinds in report["misses_pct"].values()) == pytest.approx(100, abs=1)
    assert report["points_left"] == pytest.approx(100 * scorer.baseline.distance_to_bound, abs=0.01)
    assert report["time_us"] == round(scorer.baseline.time_us, 1) and report["makespan_over_ideal"] >= 1.05
    bare = bottleneck_of(scorer, np.arange(1024), scorer.baseline, times=False, hardware=False)
    assert set(bare) == {"l2_hit_rate_pct", "points_left", "misses_pct"}


def test_misses_that_no_reuse_explains_are_conflicts_or_drift(mi300x):
    """Layer norm's rows lie 16 KiB apart: in plain sets they push each other out of a cache that has room for all."""
    work = layer_norm(M=1024, N=8192)
    plain = replace(mi300x.l2, index="modulo", index_rows=None)
    timed, quick = (Scorer(work, replace(mi300x, l2=plain), replay=replay) for replay in ("timed", "lockstep"))
    reports = [bottleneck_of(one, np.arange(1024), one.baseline, times=False) for one in (quick, timed)]
    once = 2 * 1024 * 128 + 8 * 256  # x and y once; w and b on each XCD
    for scorer, report, kind in zip((quick, timed), reports, ("conflicts", "conflicts or drift"), strict=True):
        share, lost = 100 / scorer.baseline.l2_misses, scorer.baseline.l2_misses - once
        named = sum(kinds.get(kind, 0.0) for kinds in report["misses_pct"].values())
        assert named == pytest.approx(share * lost, abs=1.5) and named > 5, "of one sign, or one number"


def test_bound_and_hit_rate_have_one_denominator(mi300x):
    """The L1s answer most reads of x: the proven bound counts them, the L2's hit rate cannot reach it."""
    scorer = Scorer(spmv(M=512, N=512), mi300x)
    contiguous = scorer.permutation(Swizzle.parse(family("contiguous")))
    score = scorer.score_order(contiguous, baseline_us=scorer.baseline.time_us)
    left = bottleneck_of(scorer, contiguous, score, times=False)["points_left"]
    assert 0 <= left < 5 < 100 * score.distance_to_bound


def test_half_lines_are_what_an_h200_misses():
    scorer = Scorer(transpose(M=256, N=256), gpu("h200"), replay="lockstep")
    report = bottleneck_of(scorer, np.arange(64), scorer.baseline, times=False)
    assert report["misses_pct"] == {"x": {"first touch": 50.0}, "y": {"first touch": 50.0}}
