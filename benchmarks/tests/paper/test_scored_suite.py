"""Does a run over the suite find what is there, keep it, go on with it, and say it alike in every form?"""

import numpy as np
import pytest

from swizzle_benchmarks.evidence.paper.scored_suite import (
    FEWEST,
    PAPER,
    cells,
    most_candidates,
    notes,
    score_kernel,
    score_suite,
)
from swizzle_sim.language import Swizzle
from swizzle_sim.pricing.scores import Score
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.search.candidates import family_specs
from swizzle_sim.workload.kernels import kernel, kernel_names
from xcd_model import gpu
from xcd_model.errors import RunError

MI300X = gpu("mi300x")
KERNELS = (
    ("softmax", {"M": 64, "N": 256}),
    ("gemm", {"M": 1024, "N": 1024, "K": 128}),
    ("fdtd_2d", {"Nx": 256, "Ny": 256}),
)


def kernels():
    return [kernel(name, **sizes) for name, sizes in KERNELS]


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    return score_suite(
        kernels(), MI300X, tmp_path_factory.mktemp("suite") / "run", effort=0.0, threads=2, replay="lockstep"
    )


def test_the_papers_ten_are_registered():
    assert len(PAPER) == len(set(PAPER)) == 10
    assert set(PAPER) <= set(kernel_names())


def test_scores_are_the_scorers_and_the_best_is_a_bijection(found):
    for result, work in zip(found, kernels(), strict=True):
        scorer = Scorer(work, MI300X, replay="lockstep")
        assert Score.from_dict(result["baseline"]) == scorer.baseline
        best = Swizzle.parse(result["best_source"])
        assert Score.from_dict(result["best"]) == scorer.score(best) or result["best_name"] == "identity"
        assert result["best_domain"] == scorer.verify(best).domain
        assert result["best"]["l2_hit_rate"] >= result["baseline"]["l2_hit_rate"]
        assert result["known"] == len(list(family_specs(work, MI300X)))


def test_a_kernel_at_its_bound_is_left_alone(found):
    assert cells(found[0])[1] == "none: launch order" and cells(found[0])[-1] == "1: at the bound"


def test_a_kernel_launched_again_and_again_is_replayed_until_steady(found):
    best = found[2]["best"]
    assert found[2]["launches"] == 1500 and best["steady"] and 1 < best["launch"] < 1500
    assert cells(found[2])[-2] == f"{best['launch']} of 1500, steady"
    assert "until a launch counts as the one before it" in notes(found, "mi300x", "lockstep")[-1]


def test_only_distinct_permutations_are_replayed(monkeypatch):
    seen, traffic = [], Scorer.traffic

    def watched(self, order, **options):
        seen.append(np.asarray(order).tobytes())
        return traffic(self, order, **options)

    monkeypatch.setattr(Scorer, "traffic", watched)
    result = score_kernel(kernel("gemm", M=512, N=512, K=64), MI300X, threads=1, replay="lockstep")
    assert len(seen) == len(set(seen)) == result["tried"] < result["known"]


def test_more_effort_tries_more():
    scorer = Scorer(kernel("fdtd_2d", Nx=256, Ny=256), MI300X, replay="lockstep")
    assert most_candidates(scorer, 0.0) == FEWEST
    assert most_candidates(scorer, 2.0) == pytest.approx(2 * most_candidates(scorer, 1.0), abs=2)


def test_a_run_goes_on_where_it_stopped(tmp_path):
    folder, seen = tmp_path / "run", []

    def stop(name, done, total, best):
        if name == "gemm":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        score_suite(kernels(), MI300X, folder, effort=0.0, on_kernel=stop, replay="lockstep")
    whole = score_suite(
        kernels(), MI300X, folder, effort=0.0, resume=True, on_kernel=lambda *w: seen.append(w[0]), replay="lockstep"
    )
    assert set(seen) == {"gemm", "fdtd_2d"}
    again = score_suite(
        kernels(),
        MI300X,
        folder,
        effort=0.0,
        resume=True,
        on_kernel=lambda *w: pytest.fail("repeated"),
        replay="lockstep",
    )
    assert again == whole


def test_a_run_is_never_overwritten_nor_mixed(tmp_path):
    folder, little = tmp_path / "run", kernels()[:1]
    with pytest.raises(RunError, match="no run to go on with"):
        score_suite(little, MI300X, folder, resume=True, replay="lockstep")
    score_suite(little, MI300X, folder, effort=0.0, replay="lockstep")
    with pytest.raises(RunError, match="never overwritten"):
        score_suite(little, MI300X, folder, effort=0.0, replay="lockstep")
    for work, effort, repeats in (
        (little, 0.0, False),
        (little, 1.0, True),
        ([kernel("softmax", M=8, N=8)], 0.0, True),
    ):
        seen = []
        told = {"resume": True, "on_kernel": lambda *counts, seen=seen: seen.append(counts), "replay": "lockstep"}
        score_suite(work, MI300X, folder, effort=effort, **told)
        assert bool(seen) == repeats
