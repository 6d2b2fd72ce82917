"""Does a run over the suite find what is there, keep it, go on with it, and say it alike in every form?"""

import json

import numpy as np
import pytest

from swizzle_benchmarks.evidence.paper.scored_suite import (
    FEWEST,
    PAPER,
    Result,
    most_candidates,
    score_kernel,
    score_suite,
    suite_markdown,
)
from swizzle_sim.language import Swizzle
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
    for result, work in zip(found.results, kernels(), strict=True):
        scorer = Scorer(work, MI300X, replay="lockstep")
        assert result.baseline == scorer.baseline
        best = Swizzle.parse(result.best_source)
        assert result.best == scorer.score(best) or result.best_name == "identity"
        assert result.best_domain == scorer.verify(best).domain
        assert result.best.l2_hit_rate >= result.baseline.l2_hit_rate
        assert result.known == len(list(family_specs(work, MI300X)))


def test_a_kernel_at_its_bound_is_left_alone(found):
    softmax = found.results[0]
    assert softmax.at_bound and softmax.tried == 1 and softmax.best_name == "identity"


def test_a_kernel_launched_again_and_again_is_replayed_until_steady(found):
    fdtd = found.results[2]
    assert fdtd.launches == 1500 and fdtd.best.steady and 1 < fdtd.best.launch < 1500
    assert f"{fdtd.best.launch} of 1500, steady" in suite_markdown(found)
    assert "until a launch counts as the one before it" in suite_markdown(found)


def test_what_is_found_does_not_depend_on_threads():
    work = kernel("gemm", M=1024, N=1024, K=128)
    one, two = (score_kernel(work, MI300X, effort=0.0, threads=n, replay="lockstep").as_dict() for n in (1, 3))
    assert {**one, "seconds": 0} == {**two, "seconds": 0}


def test_only_distinct_permutations_are_replayed(monkeypatch):
    seen, traffic = [], Scorer.traffic

    def watched(self, order, **options):
        seen.append(np.asarray(order).tobytes())
        return traffic(self, order, **options)

    monkeypatch.setattr(Scorer, "traffic", watched)
    result = score_kernel(kernel("gemm", M=512, N=512, K=64), MI300X, threads=1, replay="lockstep")
    assert len(seen) == len(set(seen)) == result.tried < result.known


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
    assert again.results == whole.results


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


def test_all_forms_say_the_same(found):
    text = suite_markdown(found)
    for result in found.results:
        line = next(line for line in text.splitlines() if line.startswith(f"| {result.kernel} |"))
        assert f"| {100 * result.best.l2_hit_rate:.2f} | {100 * result.best.bound_l2_hit_rate:.2f} |" in line
        assert Result.from_dict(json.loads(json.dumps(result.as_dict()))) == result
    assert len({line.count("|") for line in text.splitlines() if line.startswith("|")}) == 1
