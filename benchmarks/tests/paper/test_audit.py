"""Does the audit say of each printed formula what trying every workgroup says, and is nothing of it ever scored?"""

import re
from pathlib import Path

import numpy as np
import pytest

from swizzle_benchmarks.evidence.paper.audit import PAGE, audit, page, tiles_of
from swizzle_benchmarks.evidence.paper.formulas import FORMULAS
from swizzle_sim.language import Grid, Swizzle
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.search.candidates import Candidate
from swizzle_sim.search.strategies.families import optimize
from swizzle_sim.workload.kernels import kernel
from tests.conftest import typed  # noqa: F401  (a fixture)
from xcd_model import gpu, replay_lockstep
from xcd_model.errors import NotBijective, ReplayError

MI300X = gpu("mi300x")
BROKEN = [formula for formula in FORMULAS if formula.label != "11"]
SMALL = {
    "layer_norm": {"M": 200, "N": 64},
    "softmax": {"M": 200, "N": 64},
    "fdtd_2d": {"Nx": 512, "Ny": 512},
    "stencil_2d": {"M": 512, "N": 384},
    "transpose": {"M": 512, "N": 512},
}
by_label = pytest.mark.parametrize("formula", FORMULAS, ids=lambda formula: formula.label)
broken = pytest.mark.parametrize("formula", BROKEN, ids=lambda formula: formula.label)


def small(formula):
    return kernel(formula.kernel, **SMALL[formula.kernel])


def is_permutation(text, grid, sizes):
    try:
        Swizzle.parse(text).permutation(grid, 8, sizes)
    except NotBijective:
        return False
    return True


@by_label
def test_a_formula_computes_what_the_audit_says_at_the_measured_size(formula):
    work = kernel(formula.kernel, **formula.sizes)
    tiles = np.unique(tiles_of(Swizzle.parse(formula.text), work, MI300X))
    assert tiles.min() >= 0
    said = re.match(r"(?:every|(\d+)) ", formula.computes)
    assert said and tiles.size == (int(said[1]) if said[1] else work.grid.num_pids)
    times = re.search(r"each (\d+) times", formula.computes)
    if times:
        assert tiles.size * int(times[1]) == work.grid.num_pids


@by_label
def test_a_formula_holds_exactly_where_the_audit_says(formula):
    work = small(formula)
    names = ("Nx", "Ny", "X", "Y") if "Nx" in work.problem else ("M", "N", "M", "N")
    one_axis = len(work.grid.launch) == 1
    found = {}
    for m in range(1, 301 if one_axis else 21):
        for n in range(1, 2 if one_axis else 21):
            sizes = {"M": m} if one_axis else {names[0]: 32 * m, names[1]: 32 * n}
            blocks = {f"BLOCK_SIZE_{name}": 32 for name in names[2:]}
            found[m, n] = is_permutation(formula.text, Grid((m,) if one_axis else (m, n)), {**sizes, **blocks})
    assert found == {(m, n): formula.holds(m, n) for m, n in found}


@by_label
def test_a_repair_is_a_bijection_at_the_measured_size_and_the_formula_is_not(formula):
    work = kernel(formula.kernel, **formula.sizes)
    assert is_permutation(formula.repair, work.grid, work.problem)
    assert is_permutation(formula.text, work.grid, work.problem) == (formula.label == "11")


def test_figure_10_repaired_is_figure_11():
    text = {formula.label: formula for formula in FORMULAS}
    work = kernel("transpose", M=1024, N=512)
    orders = [Swizzle.parse(t).permutation(work.grid, 8, work.problem) for t in (text["10"].repair, text["11"].text)]
    np.testing.assert_array_equal(*orders)


@broken
def test_what_is_no_bijection_is_scored_nowhere(formula, tmp_path):
    work = small(formula)
    swizzle, scorer = Swizzle.parse(formula.text), Scorer(work, MI300X, replay="lockstep")
    assert not scorer.verify(swizzle).bijective
    for refused in (scorer.permutation, scorer.score):
        with pytest.raises(NotBijective, match="computed by nobody"):
            refused(swizzle)
    tiles = tiles_of(swizzle, work, MI300X)
    with pytest.raises(ReplayError, match="twice"):
        replay_lockstep(scorer.plan, tiles, workgroups_per_cu=1)
    with pytest.raises(ReplayError, match="twice"):
        scorer.score_order(tiles, baseline_us=None)
    tried = optimize(
        work,
        MI300X,
        tmp_path / "run",
        candidates=[Candidate("printed", formula.text, "paper")],
        threads=1,
        replay="lockstep",
    )
    assert tried.attempts[1].score is None and "computed by nobody" in tried.attempts[1].critique
    assert [attempt.name for attempt in tried.ranked] == ["identity"]


@pytest.mark.parametrize("command", ["check", "score"])
def test_the_commands_refuse_a_pasted_figure(typed, tmp_path, command):  # noqa: F811
    formula = FORMULAS[0]
    (tmp_path / "figure.txt").write_text(formula.text, encoding="utf-8")
    sizes = [f"{name}={size}" for name, size in SMALL["layer_norm"].items()]
    words = {
        "check": ("check", "figure.txt", "--kernel", "layer_norm", *sizes),
        "score": ("score", "layer_norm", "--swizzle", "figure.txt", *sizes),
    }
    answer = typed(*words[command])
    assert answer.code == 1
    assert "NOT a bijection" in answer.out and "pid 64 and pid 0 both compute tile 0" in answer.out
    assert "hit" not in answer.out


def test_the_page_says_it_plainly():
    text = PAGE.read_text(encoding="utf-8")
    assert "**7 of the 8 printed formulas are no bijections" in text
    for formula in FORMULAS:
        work = kernel(formula.kernel, **formula.sizes)
        verdict = Swizzle.parse(formula.text).verify(work.grid, 8, work.problem, lattice=[])
        assert f"{verdict.distinct_tiles:,} of {verdict.n_workgroups:,}" in text
        assert formula.text.strip() in text and formula.repair.strip() in text
        assert verdict.counterexample is None or verdict.counterexample.message in text


def test_the_script_makes_the_page_from_what_it_finds():
    formulas = [f for f in FORMULAS if f.label in ("7", "11")]
    little = [type(f)(**{**vars(f), "sizes": SMALL[f.kernel]}) for f in formulas]
    found = audit(little)
    assert [one.verdict.bijective for one in found] == [False, True]
    assert found[0].simulated > found[0].baseline.l2_hit_rate
    assert found[1].simulated == found[1].repair.l2_hit_rate
    text = page(found)
    assert "**1 of the 2 printed formulas" in text
    assert "64 of 200" in text
    for target in re.findall(r"`(\w+(?:/\w+)+(?:\.py)?)`", text):
        assert (Path(__file__).parents[3] / target).exists()
