"""Are the best of a run scored as compiled, and does what loses occupancy fall back?"""

from dataclasses import replace

import pytest

from swizzle_sim.language import family
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.rewrite import finalists
from swizzle_sim.rewrite.finalists import price_finalists
from swizzle_sim.search.candidates import Candidate
from swizzle_sim.search.history import History
from swizzle_sim.search.ranking import Ranking
from swizzle_sim.search.strategies.families import optimize
from swizzle_sim.workload.kernels import kernel
from swizzle_sim.workload.price import RemapPrice
from tests.unit.test_price import LAUNCHED, REWRITTEN
from xcd_model import gpu
from xcd_model.errors import CompileError, RewriteError

rank = Ranking().order
SPECS = ("group_m(size=2)", "group_m(size=4)", "column", "contiguous", "snake")


@pytest.fixture
def run(tmp_path):
    work = kernel("gemm", M=1024, N=1024, K=64, BLOCK_M=128, BLOCK_N=128)
    candidates = [Candidate(spec, family(spec), "families") for spec in SPECS]
    made = optimize(work, gpu("mi300x"), tmp_path / "run", candidates=candidates, replay="lockstep")
    return made, Scorer(work, gpu("mi300x"), replay="lockstep")


def price_by(monkeypatch, answer):
    def score(scorer, swizzle, known):
        price = answer(swizzle.name)
        slower = 3.0 if price.loses_occupancy else 1.0
        return replace(known, price=price, time_us=known.time_us * slower, l2_hit_rate=known.l2_hit_rate / slower)

    monkeypatch.setattr(finalists, "score_as_compiled", score)


def test_what_loses_occupancy_falls_back_and_is_named(run, monkeypatch):
    made, scorer = run
    best = made.ranked[0].name
    lost, kept = RemapPrice(before=LAUNCHED, after=REWRITTEN), RemapPrice(before=LAUNCHED, after=LAUNCHED)
    price_by(monkeypatch, lambda name: lost if name == best else kept)
    done = []
    with History(made.folder) as history:
        attempts, why_not = price_finalists(history, scorer, rank, most=2, on_priced=lambda *count: done.append(count))
        assert why_not == "" and list(history) == attempts  # the record is what was found
    after = rank(attempts)
    assert after[0].name != best and done[0] == (1, 2) and len(done) >= 2
    assert all(one.score.price for one in after[:2] if one.number)
    dropped = next(one for one in attempts if one.name == best)
    assert dropped.critique == "118 -> 140 registers, 2 -> 1 workgroups an SM"


def test_without_a_compiler_nothing_changes_and_the_reason_is_given(run, monkeypatch):
    made, scorer = run
    monkeypatch.setattr(
        finalists, "score_as_compiled", _raising(CompileError("Triton is not installed; it comes with"))
    )
    with History(made.folder) as history:
        attempts, why_not = price_finalists(history, scorer, rank)
        assert why_not.startswith("Triton is not installed") and attempts == list(made.attempts)


def test_a_candidate_that_cannot_be_written_says_why(run, monkeypatch):
    made, scorer = run
    monkeypatch.setattr(finalists, "score_as_compiled", _raising(RewriteError("no tl.program_id", path="k.py")))
    with History(made.folder) as history:
        attempts, why_not = price_finalists(history, scorer, rank, most=2)
    assert why_not == "" and sum("no price: k.py: no tl.program_id" in one.critique for one in attempts) == 2


def test_a_run_that_goes_on_sees_its_attempts_as_judged_and_looks_its_prices_up(run, monkeypatch):
    made, scorer = run
    lost = RemapPrice(before=LAUNCHED, after=REWRITTEN)
    price_by(monkeypatch, lambda name: lost)
    with History(made.folder) as history:
        first, _ = price_finalists(history, scorer, rank, most=2)
        assert first != list(made.attempts) and [one.judged for one in history] == list(made.attempts)
        monkeypatch.setattr(finalists, "score_as_compiled", _raising(AssertionError("compiled again")))
        again, _ = price_finalists(history, scorer, rank, most=2)
        assert again == first == list(history)
        none, _ = price_finalists(history, scorer, lambda attempts: [])
        assert none == list(made.attempts) == list(history)  # no finalist any more


def _raising(error):
    def score(*_):
        raise error

    return score
