"""Is the set-associative cache the dictionary one, hit by hit?"""

import dataclasses

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from numba import njit

from tests import naive
from tests.machines import shapes, small_gpu
from xcd_model import gpu, replay_lru
from xcd_model.cache.locate import (
    DIRTY_BITS,
    HIT,
    MARK_BITS,
    MARKS,
    WHOLE,
    WORD,
    _fetched,
    _line_of,
    _locate,
    _locate_all,
    _spread,
)
from xcd_model.cache.lru import _touch
from xcd_model.cache.packed import HOST_LINE_BYTES, aligned_words, index_of, words_of
from xcd_model.errors import SpecError, TraceError
from xcd_model.fast.lru_simd import WAYS, _touch_row, _touch_row_whole
from xcd_model.spec.caches import complete_rows, fold_rows, hash_table, reduce_rows
from xcd_model.speed import _way_of


def cache(sets, ways, fold=None):
    return small_gpu(l2=(sets, ways, fold)).l2


streams = st.lists(st.integers(0, 60), max_size=200)


@settings(max_examples=200, deadline=None)
@given(lines=streams, shape=shapes(9))
def test_hits_are_the_dictionarys(lines, shape):
    assert replay_lru(np.array(lines, int), cache(*shape)).tolist() == naive.lru_hits(lines, cache(*shape))


@settings(max_examples=100, deadline=None)
@given(lines=streams, sets=st.integers(1, 9), ways=st.integers(1, 6))
def test_inclusion_more_ways_never_lose_a_hit(lines, sets, ways):
    few, many = (replay_lru(np.array(lines, int), cache(sets, w)) for w in (ways, ways + 1))
    assert np.all(many >= few)


@settings(max_examples=100, deadline=None)
@given(shape=shapes(300), first=st.one_of(st.integers(0, 2**20), st.integers(0, 2**24)))
def test_set_and_tag_determine_the_line_and_sets_are_the_oracles(shape, first):
    small = cache(*shape)
    index, found, of_oracle = index_of(small, first + 100), {}, {}
    for line in range(first, first + 100):
        at, tag = _locate(line, index)
        assert 0 <= at < small.sets
        assert tag == line // small.sets  # what `check_tags` goes by
        assert _line_of(at, tag, index) == line
        assert found.setdefault((at, tag), line) == line
        assert of_oracle.setdefault(at, naive.set_of(line, small)) == naive.set_of(line, small)
    assert len(set(of_oracle.values())) == len(of_oracle)


@pytest.mark.parametrize("fold", [None, (16, 2), (4, 1)])
def test_a_block_as_large_as_the_cache_fills_it(fold):
    """Any power-of-two run of lines is spread evenly: the fold only renames channels."""
    small = cache(256, 2, fold)
    lines = np.arange(5 * 512, 6 * 512)
    assert replay_lru(np.tile(lines, 2), small).tolist() == [False] * 512 + [True] * 512


@settings(max_examples=100, deadline=None)
@given(
    touches=st.lists(st.tuples(st.integers(0, 5), st.integers(1, 3), st.integers(0, 15)), max_size=60),
    ways=st.integers(1, 4),
)
@example([(0, 1, 0), (0, 2, 15), (1, 3, 0), (0, 2, 15)], 2)  # every mark differs
def test_pieces_gather_while_a_line_is_held_and_leave_with_it_and_its_filler_moves_along(touches, ways):
    """One set, word by word: what `_touch` hands back carries the dirty pieces that the oracle's victim had."""
    oracle, filled_by, own = naive.LruCache(cache(1, ways)), {}, slice(ways, 2 * ways)
    words, filler = np.arange(3 * ways, dtype=np.uint32), np.arange(3 * ways, dtype=np.int32)  # and a set on each side
    words[own] = filler[own] = 0
    plain, beside = words.copy(), np.delete(filler, own)
    for by, (tag, halves, dirty) in enumerate(touches, 1):
        pieces, wanted = ({bit for bit in range(4) if mask >> bit & 1} for mask in (dirty, halves))
        lacking, victim = oracle.touch(tag, pieces, wanted)
        marks = halves << DIRTY_BITS | dirty
        word = (tag + 1) << MARK_BITS | marks
        found, gone = int(_touch(words, filler, ways, ways, word, by)), _touch(plain, None, ways, ways, word, 0)
        assert found & WORD == int(gone) & WORD
        assert words.tolist() == plain.tolist()
        assert (gone == HIT) == (lacking == 0)
        if lacking == 0:
            assert found >> 32 == filled_by[tag]
        else:
            filled_by[tag] = by
            assert _fetched(gone, marks) == lacking
            assert {bit for bit in range(4) if gone >> bit & 1} == (victim[1] if victim else set())
    dirty = sum(int(word & 15).bit_count() for word in words[own])
    assert dirty == sum(len(pieces) for lines in oracle.sets.values() for pieces in lines.values())
    held = [int(word) >> MARK_BITS for word in words[own] if word]
    assert filler[own][: len(held)].tolist() == [filled_by[tag - 1] for tag in held]
    assert np.delete(words, own).tolist() == np.delete(filler, own).tolist() == beside.tolist()


def test_the_highest_tag_fits_and_the_next_does_not():
    small = cache(2, 2)
    top = (2 ** (32 - MARK_BITS) - 2) * 2 + 1
    assert replay_lru(np.array([top, 0, top, 1, top]), small).tolist() == [False, False, True, False, True]
    with pytest.raises(TraceError, match=f"line {top + 1} does not fit"):
        replay_lru(np.array([top + 1]), small)


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        (np.array([[1, 2]]), r"\(1, 2\)"),
        (np.array([1.0]), "float64"),
        (np.array([3, -2, 1]), r"lines\[1\] = -2"),
    ],
)
def test_bad_streams_are_refused(lines, says):
    with pytest.raises(TraceError, match=says):
        replay_lru(lines, cache(4, 2))


# ---- Are linear index functions what their rows say, and are those refused that lose a line?
@settings(max_examples=100, deadline=None)
@given(
    lines=st.lists(st.integers(0, 2**16), min_size=1, max_size=200),
    named=st.sets(st.integers(0, 6), min_size=1, max_size=3),
    upper=st.integers(0, 2**12 - 1),
    bits=st.integers(3, 6),
)
def test_fewer_rows_leave_the_other_set_bits_plain_at_any_size(lines, named, upper, bits):
    assume(len(named) < bits)
    rows = [1 << bit | (upper * 2654435761 >> bit & 0xFFF) << bit + 1 for bit in named]
    cache = small_gpu(l2=(1 << bits, 2, rows)).l2
    assert replay_lru(np.array(lines), cache).tolist() == naive.lru_hits(lines, cache)


def test_a_fold_as_rows_is_the_fold():
    """16 channels of 128 sets, 256 B pieces: the same hits, said in two ways."""
    lines = np.random.default_rng(1).integers(0, 2**18, 20_000) * 3
    fold = small_gpu(l2=(2048, 1, (16, 2))).l2
    rows = small_gpu(l2=(2048, 1, fold_rows(2048, 16, 2))).l2
    assert rows.index == "xor"
    assert replay_lru(lines, fold).tolist() == replay_lru(lines, rows).tolist()


def test_rows_are_reduced_to_low_bits_and_tag_bits():
    assert reduce_rows([0b1011, 0b0110]) == [0b11, 0b01]


@pytest.mark.parametrize("sets", [16, 32, 256, 2048, 4096])
def test_a_hash_of_eleven_bits_fits_smaller_and_larger_caches(sets):
    """Rows named by bits that a smaller cache lacks are left out; neighbouring lines still fill every set."""
    rows = [row // 128 for row in gpu("mi355x").l2.index_rows]
    completed = rows if len(rows) == sets.bit_length() - 1 else complete_rows(rows, sets.bit_length() - 1)
    hashed = hash_table(reduce_rows(completed), n_tags=4)
    lines = np.arange(4 * sets)
    found = (lines % sets) ^ hashed[lines // sets]
    assert np.array_equal(np.bincount(found, minlength=sets), np.full(sets, 4))
    smaller = dataclasses.replace(gpu("mi355x").l2, size_bytes=sets * 16 * 128)
    assert smaller.sets == sets and smaller.line_rows() == reduce_rows(completed)


ROWS, FOLD = (4, 2, [1, 2]), (8, 2, (4, 1))


@pytest.mark.parametrize(
    ("shape", "change", "says"),
    [
        (ROWS, {"index_rows": (128, 256, 128 + 512)}, "not as many as set bits must each have another lowest bit"),
        (ROWS, {"index_rows": (0b11 << 7,), "size_bytes": 3 * 2 * 128}, "must be a power of two"),
        (ROWS, {"index_rows": (128, 64)}, "none of them within a line"),
        (ROWS, {"index_rows": (128, 128 + 1)}, "none of them within a line"),
        (ROWS, {"index_rows": (128, "256")}, "must be a mask"),
        (ROWS, {"index_rows": (128, 128)}, "line bit 1 is lost"),
        (ROWS, {"index_rows": (512, 256)}, "line bit 0 is lost"),
        (ROWS, {"index_rows": None}, "index_rows = None must be given"),
        (ROWS, {"index": "modulo"}, "must be left out"),
        (FOLD, {"index_channels": 12}, "index_channels = 12 must be a power of two"),
        (FOLD, {"index_channels": None}, "index_channels = None must be given"),
        (FOLD, {"index": "modulo"}, "index_channels = 4 must be left out"),
        (FOLD, {"index": "xor"}, "index_channels = 4 must be left out"),
    ],
)
def test_descriptions_with_bad_rows_or_a_bad_fold_are_refused(shape, change, says):
    cache = small_gpu(l2=shape).l2
    with pytest.raises(SpecError, match=says):
        dataclasses.replace(cache, **change)


# ---- Are the batched locating and the vector rows the plain ones, word by word?
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
def test_a_vector_row_is_the_scalar_row_without_fillers_and_with_them(ways, touches):
    """Three neighbouring sets: a narrow row must leave the words behind it alone."""
    scalar, vector = np.zeros(3 * ways, np.uint32), aligned_words(3 * ways)
    plain = [np.zeros(WAYS, np.uint32), np.zeros(WAYS, np.int32)]
    quick = [aligned_words(WAYS), aligned_words(WAYS).view(np.int32)]
    for by, (at, tag, marks) in enumerate(touches, 1):
        word, last = (tag + 1) << MARK_BITS | marks, 1 << (ways - 1)
        assert touch_row(vector, None, at * ways, word, last, 0) == _touch(scalar, None, at * ways, ways, word, 0)
        assert vector.tolist() == scalar.tolist()
        assert touch_row(*quick, 0, word, last, by) == _touch(*plain, 0, ways, word, by)
    for a, b in zip(plain, quick, strict=True):
        assert a[:ways].tolist() == b[:ways].tolist()


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
