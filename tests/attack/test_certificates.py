"""Is any mutant of a certificate accepted whose claim is false? The long form: ``tests.attack.certificates``."""

from swizzle_sim.proof.checker import State
from tests.attack.certificates import attack, liars
from tests.attack.conftest import TIMES


def test_no_mutant_with_a_false_claim_is_accepted():
    found = attack(1500 * TIMES, seed=5)
    assert found["accepted"] >= 50
    assert found["false"] == 0


def test_a_finder_that_lies_is_not_believed():
    assert liars(100 * TIMES, seed=5)["false"] == 0


def test_a_checker_that_does_not_add_up_is_found_out(monkeypatch):
    monkeypatch.setattr(State, "adds_up", lambda *_: True)
    assert liars(60, seed=5)["false"] >= 1
