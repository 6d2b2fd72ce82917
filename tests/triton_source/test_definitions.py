"""Are counts of tiles found however their kernel rounds up, and nothing else taken for one?"""

import ast
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swizzle_sim.triton_source.counts import two_quotients
from swizzle_sim.triton_source.definitions import Definitions, evaluate


def quotients(*expressions):
    lines = "".join(f"    x{place} = {one}\n" for place, one in enumerate(expressions))
    return list(Definitions(ast.parse(f"def kernel(M, N, BLOCK):\n{lines}").body[0]).quotients())


ORDERS = ["".join(terms).lstrip("+") for terms in itertools.permutations(["+M", "+BLOCK", "-1"])]


@pytest.mark.parametrize("terms", [one for one in ORDERS if not one.startswith("-")])
@given(m=st.integers(0, 10**6), block=st.integers(1, 300))
def test_a_division_that_rounds_up_counts_as_cdiv_does(terms, m, block):
    (found,) = quotients(f"({terms}) // BLOCK")
    assert evaluate(found, {"M": m, "BLOCK": block}) == -(-m // block)


def test_one_count_in_several_spellings_is_one():
    assert len(quotients("tl.cdiv(M, BLOCK)", "(M + BLOCK - 1) // BLOCK", "(M + (BLOCK - 1)) // BLOCK")) == 1
    assert len(quotients("tl.cdiv(M, BLOCK)", "(N - 1 + BLOCK) // BLOCK")) == 2


@pytest.mark.parametrize(
    "other",
    [
        *("M // BLOCK", "(M + BLOCK) // BLOCK", "(M - BLOCK - 1) // BLOCK", "(M + BLOCK + 1) // BLOCK"),
        *("(BLOCK - M - 1) // BLOCK", "(M + N - 1) // BLOCK", "(M + N + BLOCK - 1) // BLOCK", "(M - 1) // BLOCK"),
    ],
)
def test_other_divisions_are_no_counts(other):
    assert quotients(other) == []


def test_a_launch_is_the_product_of_two_counts_however_they_are_written():
    text = "def kernel(M, N, BM, BN):\n    m = (M + BM - 1) // BM\n    n = (N + BN - 1) // BN\n"
    function = ast.parse(text).body[0]
    launch = ast.parse(two_quotients(function, function.body), mode="eval").body
    assert evaluate(launch, {"M": 100, "N": 100, "BM": 64, "BN": 64}) == 4
