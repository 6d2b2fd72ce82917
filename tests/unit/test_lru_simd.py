"""Are the batched locating and the vector rows the plain ones, word by word?"""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from tests.machines import shapes, small_gpu
from xcd_model.cache.locate import MARK_BITS, MARKS, _locate, _locate_all
from xcd_model.cache.lru import _touch, _touch_by
from xcd_model.cache.packed import HOST_LINE_BYTES, aligned_words, index_of
from xcd_model.fast.lru_simd import WAYS, _touch_row, _touch_row_by
from xcd_model.speed import _way_of


@njit
def locate_all(line, index, at, word):
    _locate_all(line, line.size, index, at, word)


@njit
def touch_row(words, at, word, last):
    return _touch_row(words, at, word, last)


@settings(max_examples=100, deadline=None)
@given(shape=shapes(300), lines=st.lists(st.integers(0, 2**24), min_size=1, max_size=40))
def test_a_chunk_is_located_as_its_lines_are(shape, lines):
    index = index_of(small_gpu(l2=shape).l2, max(lines))
    at, word = np.zeros(len(lines), np.uint64), np.zeros(len(lines), np.uint64)
    locate_all(np.array(lines, np.int64), index, at, word)
    expected = [_locate(line, index) for line in lines]
    assert at.tolist() == [where for where, _ in expected]
    assert word.tolist() == [(tag + 1) << MARK_BITS for _, tag in expected]


@settings(max_examples=200, deadline=None)
@given(
    ways=st.integers(1, WAYS),
    touches=st.lists(
        st.tuples(st.integers(0, 2), st.one_of(st.integers(0, 20), st.just(2**26 - 2)), st.integers(0, MARKS)),
        max_size=120,
    ),
)
def test_a_vector_row_is_the_scalar_row(ways, touches):
    """Three neighbouring sets: a narrow row must leave the words behind it alone."""
    scalar, vector = np.zeros(3 * ways, np.uint32), aligned_words(3 * ways)
    for at, tag, marks in touches:
        word = (tag + 1) << MARK_BITS | marks
        assert touch_row(vector, at * ways, word, 1 << (ways - 1)) == _touch(scalar, at * ways, ways, word)
        assert vector.tolist() == scalar.tolist()


def test_rows_of_a_full_vector_start_host_cache_lines():
    assert all(aligned_words(n).ctypes.data % HOST_LINE_BYTES == 0 for n in (16, 1000, 4096, 1 << 20))


@njit
def touch_row_by(words, filler, at, word, last, by):
    return _touch_row_by(words, filler, at, word, last, by)


@settings(max_examples=200, deadline=None)
@given(ways=st.integers(1, WAYS), touches=st.lists(st.tuples(st.integers(0, 20), st.integers(0, MARKS)), max_size=120))
def test_a_vector_row_with_fillers_is_the_scalar_one(ways, touches):
    plain = [np.zeros(WAYS, np.uint32), np.zeros(WAYS, np.int32)]
    quick = [aligned_words(WAYS), aligned_words(WAYS).view(np.int32)]
    for by, (tag, marks) in enumerate(touches):
        word = (tag + 1) << MARK_BITS | marks
        expected = _touch_by(*plain, 0, ways, word, by)
        assert touch_row_by(*quick, 0, word, 1 << (ways - 1), by) == expected
    for a, b in zip(plain, quick, strict=True):
        assert a[:ways].tolist() == b[:ways].tolist()


@njit
def way_of(words, row, ways, word, within):
    return _way_of(words, row, ways, word, within)


@settings(max_examples=200, deadline=None)
@given(ways=st.integers(1, 200), row=st.integers(0, 3), way=st.integers(0, 250), marks=st.integers(0, MARKS))
def test_a_way_is_found_among_any_number_of_them(ways, row, way, marks):
    """A word in the slack behind the last way is none of the set's."""
    words = aligned_words(row * ways + max(ways, way + 1))
    words[:] = np.arange(words.size) + 1000 << MARK_BITS
    word = np.uint32(1000 + row * ways + way << MARK_BITS | marks)
    assert way_of(words, row * ways, ways, word, np.uint32(MARKS + 1)) == (way if way < ways else -1)
