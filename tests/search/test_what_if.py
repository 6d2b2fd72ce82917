"""Are hypothetical GPUs valid ones, and is the capacity curve what replays of each cache give?"""

from dataclasses import replace

import numpy as np
import pytest

import swizzle_sim
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.search.what_if import hypothetical, read_changes, what_if
from swizzle_sim.workload.kernels import kernel
from tests.search.naive_sharing import depth_of
from xcd_model import xcd_of
from xcd_model.analysis.stack_distance import capacity_curve
from xcd_model.errors import ReplayError, SpecError, UnknownName


def test_changes_are_made_together(mi300x):
    made = swizzle_sim.what_if(mi300x, {"l2.size_bytes": 8 * 2**20, "l2.ways": 32, "xcds": 16})
    assert (made.l2.size_bytes, made.l2.ways, made.xcds, made.cus) == (8 * 2**20, 32, 16, 16 * 38)
    assert made.mall == mi300x.mall and "l2.size_bytes" not in made.facts and "l2.line_bytes" in made.facts
    assert what_if(mi300x, {}) is mi300x


def test_dispatch_is_a_number_of_the_gpu(mi300x):
    chunked = what_if(mi300x, {"dispatch": "chunked"})
    dealt = [xcd_of(608, one).tolist() for one in (chunked, what_if(chunked, {"dispatch_chunk": 2}))]
    assert [xcd[:3] + xcd[38:40] for xcd in dealt] == [[0, 0, 0, 1, 1], [0, 0, 1, 3, 3]]
    assert xcd_of(608, what_if(mi300x, {"dispatch": "one_after_another"})).tolist() == sorted(76 * list(range(8)))
    with pytest.raises(SpecError, match="dispatch = 'tree' is not known; accepted: round_robin, chunked"):
        what_if(mi300x, {"dispatch": "tree"})


def test_words(mi300x):
    assert read_changes(["l2.size_bytes=8MiB, 16MiB", "xcds=4"]) == {"l2.size_bytes": [2**23, 2**24], "xcds": [4]}
    found = [(one["xcds"], gpu.xcds) for one, gpu in hypothetical(mi300x, read_changes(["xcds=4,16"]))]
    assert found == [(4, 4), (16, 16)]
    for word in ("xcds", "=4", "xcds=", "xcds=4,"):
        with pytest.raises(SpecError, match="key=value"):
            read_changes([word])
    with pytest.raises(SpecError, match="twice"):
        read_changes(["xcds=4", "xcds=8"])


@pytest.mark.parametrize(
    ("changes", "error", "told"),
    [
        ({"l2.size": 1}, UnknownName, "did you mean l2.size_bytes"),
        ({"facts": 1}, UnknownName, "facts"),
        ({"xcds": 0}, SpecError, "xcds = 0"),
        ({"l2.size_bytes": 4_000_000}, SpecError, "nearest sizes"),
        ({"clock_mhz": "fast"}, SpecError, "clock_mhz"),
    ],
)
def test_a_gpu_that_cannot_be(mi300x, changes, error, told):
    with pytest.raises(error, match=told):
        what_if(mi300x, changes)


@pytest.mark.parametrize(
    ("name", "sizes"),
    [("gemm", {"M": 512, "N": 512, "K": 512, "BLOCK_M": 64, "BLOCK_N": 64}), ("stencil_2d", {"M": 512, "N": 512})],
)
@pytest.mark.parametrize("l1", [True, False])
def test_the_curve_is_what_each_cache_gives(mi300x, name, sizes, l1):
    small = what_if(mi300x, {"l2.size_bytes": 64 * 2**10})
    small = replace(small, l1i=None) if l1 else replace(small, l1=None, l1i=None)
    scorer = Scorer(kernel(name, **sizes), small, replay="lockstep")
    order = np.random.default_rng(0).permutation(scorer.kernel.grid.num_pids)
    curve = capacity_curve(scorer.plan, order, workgroups_per_cu=scorer.occupancy, sets=(32, 64, 128), depth=16)
    for sets, ways in ((32, 1), (32, 16), (64, 5), (128, 8)):
        other = what_if(small, {"l2.size_bytes": curve.size_bytes(sets, ways), "l2.ways": ways})
        one = Scorer(scorer.kernel, other, replay="lockstep").traffic(order)
        assert curve.l2_hit_rate[curve.sets.index(sets), ways - 1] == pytest.approx(one.l2_hit_rate, abs=1e-12)
    assert np.all(np.diff(curve.l2_hit_rate, axis=1) >= 0)  # LRU inclusion


def test_the_curve_of_a_copy_by_lists(mi300x):
    """One XCD, one CU, no L1, plain index: the stream is the trace, so lists can follow it."""
    plain = {"l2.index": "modulo", "l2.index_rows": None}
    lone = what_if(mi300x, {"xcds": 1, "cus_per_xcd": 1, "l2.size_bytes": 2**15, **plain})
    lone = replace(lone, l1=None, mall=None)
    scorer = Scorer(kernel("stencil_2d", M=64, N=128), lone, replay="lockstep")
    trace = scorer.plan.trace
    order = np.arange(trace.n_workgroups)
    stream = [
        int(trace.base[i]) + int(r)
        for i in range(trace.n_instructions)
        for r in trace.rel[trace.rel_start[trace.template[i]] : trace.rel_start[trace.template[i] + 1]]
    ]
    curve = capacity_curve(scorer.plan, order, workgroups_per_cu=1, sets=(16,), depth=6)
    for ways in (1, 2, 6):
        missed = len(stream) - depth_of(stream, 16, ways, lambda line: line % 16)
        assert curve.l2_hit_rate[0, ways - 1] == pytest.approx(1 - missed / curve.requests)


def test_bad_depth(small, mi300x):
    with pytest.raises(ReplayError, match="depth = 99"):
        capacity_curve(Scorer(small, mi300x, replay="lockstep").plan, np.arange(256), workgroups_per_cu=1, depth=99)
