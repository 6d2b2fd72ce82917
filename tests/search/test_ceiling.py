"""Is the sharing graph the trace's, are partitions as good as can be, and does a ceiling stand above every formula?"""

import numpy as np
import pytest

from swizzle_benchmarks.suite.gemm import gemm
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.search.sharing_graph import improve_partition, in_waves, sharing_graph, subgraph
from swizzle_sim.search.strategies.ceiling import ceiling, write_table
from swizzle_sim.workload.kernels import kernel
from tests.search.naive_sharing import cheapest, lines_of, misses
from xcd_model.errors import RunError, SearchError


def plan_of(work, mi300x):
    return Scorer(work, mi300x, replay="lockstep").plan


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("gemm", {"M": 300, "N": 200, "K": 100, "BLOCK_M": 64, "BLOCK_N": 64}),
        ("stencil_2d", {"M": 96, "N": 128}),
        ("transpose", {"M": 128, "N": 96}),
    ],
)
def test_the_graph_counts_as_sets_do(name, sizes, mi300x):
    plan = plan_of(kernel(name, **sizes), mi300x)
    graph, lines = sharing_graph(plan), lines_of(plan.trace)
    draw = np.random.default_rng(1)
    for n_parts in (1, 2, 8):
        part = draw.integers(n_parts, size=len(lines))
        assert graph.misses(part, n_parts) == misses(lines, part, n_parts)
    some = draw.permutation(len(lines))[: len(lines) // 2]
    part = draw.integers(3, size=some.size)
    assert subgraph(graph, some).misses(part, 3) == misses([lines[w] for w in some], part, 3)


def test_small_partitions_are_the_best_there_are(mi300x):
    plan = plan_of(gemm(M=128, N=256, K=64, BLOCK_M=64, BLOCK_N=64), mi300x)  # 2 x 4 tiles
    graph, lines = sharing_graph(plan), lines_of(plan.trace)
    start = np.array([0, 1, 0, 1, 1, 0, 1, 0])
    part = improve_partition(graph, start, 2, seed=3)
    assert np.bincount(part).tolist() == [4, 4]
    assert graph.misses(part, 2) == cheapest(lines, (4, 4))


def test_swaps_keep_sizes_and_never_lose(small, mi300x):
    graph = sharing_graph(plan_of(small, mi300x))
    start = np.random.default_rng(0).permutation(np.arange(256) % 7)
    for heat in (0.0, None):
        part = improve_partition(graph, start, 7, heat=heat, swaps=50_000)
        assert np.array_equal(np.bincount(part), np.bincount(start))
        assert graph.misses(part, 7) < graph.misses(start, 7)
    with pytest.raises(SearchError):
        improve_partition(graph, start[:-1], 7)


def test_waves_are_a_permutation(small, mi300x):
    graph = sharing_graph(plan_of(small, mi300x))
    mine = np.random.default_rng(0).permutation(256)[:90]
    assert sorted(in_waves(graph, mine, 20)) == sorted(mine)


def test_a_ceiling_lies_between_the_best_formula_and_the_bound(mi300x, tmp_path):
    work = gemm(M=832, N=704, K=256, BLOCK_M=64, BLOCK_N=64)
    found = ceiling(work, mi300x, formulas=12, evaluations=30)
    assert found.baseline.l2_hit_rate <= found.formula.l2_hit_rate <= found.permutation.l2_hit_rate
    assert found.permutation.l2_hit_rate <= found.assigned_bound + 1e-12 <= found.bound + 2e-12
    assert sorted(found.order) == list(range(work.grid.num_pids))
    assert (
        Scorer(work, mi300x, replay="lockstep").score_order(found.order, baseline_us=1.0).l2_hits
        == found.permutation.l2_hits
    )
    files = write_table(tmp_path / "table", found.order, "a note")
    assert np.array_equal(np.load(files[0]), found.order) and "a note" in files[1].read_text()
    with pytest.raises(RunError, match="never overwritten"):
        write_table(tmp_path / "table", found.order, "a note")


def test_bad_budgets(small, mi300x):
    with pytest.raises(SearchError, match="each at least 1"):
        ceiling(small, mi300x, evaluations=0)
