"""Are the batched locating and the vector rows the plain ones, word by word?"""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from tests.machines import shapes, small_gpu
from xcd_model.cache.locate import MARK_BITS, MARKS, WHOLE, _locate, _locate_all, _spread
from xcd_model.cache.lru import _touch
from xcd_model.cache.packed import HOST_LINE_BYTES, aligned_words, index_of, words_of
from xcd_model.fast.lru_simd import WAYS, _touch_row, _touch_row_whole
from xcd_model.speed import _way_of


@njit
def locate_all(line, index, at, row, word):
    _locate_all(line, line.size, index, at, row, word)


@njit
def touch_row(words, filler, at, word, last, by):
    return _touch_row(words, filler, at, word, last, by)


@settings(max_examples=100, deadline=None)
@given(shape=shapes(300), lines=st.lists(st.integers(0, 2**24), min_size=1, max_size=40))
def test_a_chunk_is_located_as_its_lines_are(shape, lines):
    index = index_of(small_gpu(l2=shape).l2, max(lines))
    at, row, word = (np.zeros(len(lines), np.uint64) for _ in range(3))
    locate_all(np.array(lines, np.int64), index, at, row, word)
    expected = [_locate(line, index) for line in lines]
    assert at.tolist() == [where for where, _ in expected]
    assert row.tolist() == [_spread(where) for where, _ in expected]
    assert word.tolist() == [(tag + 1) << MARK_BITS for _, tag in expected]


@settings(deadline=None)
@given(n_sets=st.one_of(st.integers(1, 5000), st.sampled_from([2**17, 2**18, 2**20])))
def test_each_set_has_a_row_of_its_own_and_a_row_says_whose_it_is(n_sets):
    index = index_of(small_gpu().l2, 1000)._replace(n_sets=n_sets)
    sets = np.arange(n_sets)
    rows = _spread(sets)
    assert np.unique(rows).size == n_sets and words_of(index, 1) > rows.max() >= rows.min() >= 0
    assert np.array_equal(_spread(rows), sets)


def test_rows_of_a_tile_whose_lines_lie_a_power_of_two_apart_are_spread_over_the_hosts_cache():
    for pitch in (64, 128, 256, 1024, 4096):
        assert np.unique(_spread(np.arange(64) * pitch) % 64).size == 64


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
        assert touch_row(vector, None, at * ways, word, 1 << (ways - 1), 0) == _touch(
            scalar, None, at * ways, ways, word, 0
        )
        assert vector.tolist() == scalar.tolist()


@njit
def touch_row_whole(words, filler, at, word, last, by):
    return _touch_row_whole(words, filler, at, word, last, by)


@settings(max_examples=200, deadline=None)
@given(
    ways=st.integers(1, WAYS),
    others=st.lists(st.tuples(st.integers(21, 40), st.integers(0, MARKS)), max_size=WAYS),
    touches=st.lists(st.integers(0, 20), max_size=120),
)
def test_a_row_whose_lines_have_the_marks_that_are_touched_is_the_scalar_row(ways, others, touches):
    """There are words of other tensors in it, with any marks."""
    scalar, scalar_by = np.zeros(ways, np.uint32), np.zeros(ways, np.int32)
    vector, vector_by = aligned_words(ways), aligned_words(ways).view(np.int32)
    only = aligned_words(ways)
    for by, (tag, marks) in enumerate(others[:ways]):
        scalar[by] = vector[by] = only[by] = (tag + 1) << MARK_BITS | marks
    for by, tag in enumerate(touches):
        word, last = (tag + 1) << MARK_BITS | WHOLE, 1 << (ways - 1)
        expected = _touch(scalar, scalar_by, 0, ways, word, by)
        assert touch_row_whole(vector, vector_by, 0, word, last, by) == expected
        assert touch_row_whole(only, None, 0, word, last, 0) == expected & 0xFFFFFFFF
        assert only.tolist() == vector.tolist() == scalar.tolist() and vector_by.tolist() == scalar_by.tolist()


def test_rows_of_a_full_vector_start_host_cache_lines():
    assert all(aligned_words(n).ctypes.data % HOST_LINE_BYTES == 0 for n in (16, 1000, 4096, 1 << 20))


@settings(max_examples=200, deadline=None)
@given(ways=st.integers(1, WAYS), touches=st.lists(st.tuples(st.integers(0, 20), st.integers(0, MARKS)), max_size=120))
def test_a_vector_row_with_fillers_is_the_scalar_one(ways, touches):
    plain = [np.zeros(WAYS, np.uint32), np.zeros(WAYS, np.int32)]
    quick = [aligned_words(WAYS), aligned_words(WAYS).view(np.int32)]
    for by, (tag, marks) in enumerate(touches):
        word = (tag + 1) << MARK_BITS | marks
        expected = _touch(*plain, 0, ways, word, by)
        assert touch_row(*quick, 0, word, 1 << (ways - 1), by) == expected
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
