"""Is anything that is called proved false, of random and mutated texts? The long form: ``tests.attack.proof_texts``."""

from swizzle_sim.language import Grid, parse_form
from swizzle_sim.language.verdict import PROVED
from tests.attack.conftest import TIMES
from tests.attack.proof_texts import attack, holds_at


def test_nothing_proved_is_false():
    found = attack(60 * TIMES, seed=3, proofs_only=True)
    assert found["texts"] == 60 * TIMES
    assert found[PROVED] >= 5
    assert found["false proved"] == 0


def test_the_evaluator_tells_right_from_wrong():
    naive = parse_form("pid = pid % num_xcds * (num_pids // num_xcds) + pid // num_xcds")
    assert holds_at(naive, Grid((64,)), 8)
    assert not holds_at(naive, Grid((65,)), 8)
