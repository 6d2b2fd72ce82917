"""Is arithmetic on patterns the arithmetic of each workgroup's numbers?"""

import operator

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from swizzle_sim.capture import arithmetic
from swizzle_sim.capture.values import Known, Patterns

PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # the machine may be busy
small = st.integers(-40, 40)


@st.composite
def blocks(draw, n, lanes, low=-40):
    """A block of n workgroups and what each of them holds."""
    items = st.integers(low, 60)
    shared = draw(st.booleans())
    offsets = np.array(draw(st.lists(items, min_size=n, max_size=n)), np.int64)
    rows = [draw(st.lists(st.integers(0, 30), min_size=lanes, max_size=lanes)) for _ in range(1 if shared else n)]
    flat = draw(st.booleans())
    return np.array(
        [offsets[w] + (0 if flat else np.array(rows[w % len(rows)])) + np.zeros(lanes, int) for w in range(n)]
    )


def known(table, values):
    split = [table.split(row.astype(np.int32)) for row in values]
    u, p = (np.array(column, np.int64) for column in zip(*split, strict=True))
    return Known(u if np.ptp(u) else int(u[0]), p if np.ptp(p) else int(p[0]), np.int32, None)


def held(table, value, n):
    u, p = np.broadcast_to(value.u, n), np.broadcast_to(value.p, n)
    return np.array([table[int(p[w])] if value.kind.kind == "b" else u[w] + table[int(p[w])] for w in range(n)])


pairs = st.tuples(st.integers(1, 5), st.integers(1, 4)).flatmap(lambda s: st.tuples(blocks(*s), blocks(*s)))


@PATIENT
@given(pairs)
def test_sums_and_comparisons(pair):
    a, b = pair
    table, n = Patterns(), len(a)
    x, y = known(table, a), known(table, b)
    for sign in (1, -1):
        assert np.array_equal(held(table, arithmetic.add(table, x, y, sign), n), a + sign * b)
    for how in ("LT", "LE", "GT", "GE", "EQ", "NE"):
        expected = getattr(operator, how.lower())(a, b)
        assert np.array_equal(held(table, arithmetic.compare(table, x, y, how), n), expected), how


@PATIENT
@given(pairs)
def test_choice(pair):
    a, b = pair
    table, n = Patterns(), len(a)
    x, y = known(table, a), known(table, b)
    where = arithmetic.compare(table, x, y, "LT")
    assert np.array_equal(held(table, arithmetic.select(table, where, x, y), n), np.minimum(a, b))


@PATIENT
@given(pairs, st.integers(1, 9))
def test_products_and_quotients_by_a_number_for_each_workgroup(pair, by):
    a, b = np.abs(pair[0]), pair[1]
    table, n = Patterns(), len(a)
    factor = b * 0 + b[:, :1]
    x, y = known(table, a), known(table, factor)
    assert np.array_equal(held(table, arithmetic.multiply(table, x, y), n), a * factor)
    divisor = np.abs(factor) % 7 + by
    z = known(table, divisor)
    for remainder, expected in ((False, a // divisor), (True, a % divisor)):
        assert np.array_equal(held(table, arithmetic.divide(table, x, z, remainder=remainder), n), expected)


def test_numbers_that_leave_their_type_have_no_short_way():
    table = Patterns()
    large = known(table, np.array([[2**31 - 1]]))
    assert arithmetic.add(table, large, large) is None
    assert arithmetic.multiply(table, large, large) is None
    assert arithmetic.divide(table, large, known(table, np.array([[0]])), remainder=True) is None
