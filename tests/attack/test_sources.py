"""Do the readers give no text that differs from what a C++ or Triton source computes, whatever constructs it has?"""

import os

import pytest

from tests.attack.sources import attack, has_compiler

COUNT = int(os.environ.get("ATTACK_SOURCES", "200"))  # hours on request: python -m tests.attack.sources --count 100000


@pytest.mark.parametrize("kind", ["c", "kernels", "triton"])
def test_what_is_read_is_what_is_computed(kind):
    if kind != "triton" and not has_compiler():
        pytest.skip("no g++ here, whose programs are the truth")
    counts, wrong = attack(COUNT, seed=COUNT, kinds=(kind,))
    assert not wrong, wrong[0]
    assert counts["read"] > COUNT // 20  # it is no attack where all is skipped
