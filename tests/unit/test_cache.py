"""Is the set-associative cache the dictionary one, hit by hit?"""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests import naive
from tests.machines import shapes, small_gpu
from xcd_model import replay_lru
from xcd_model.cache.locate import DIRTY_BITS, HIT, MARK_BITS, WORD, _fetched, _line_of, _locate
from xcd_model.cache.lru import _touch
from xcd_model.cache.packed import index_of
from xcd_model.errors import TraceError


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
def test_pieces_gather_while_a_line_is_held_and_leave_with_it(touches, ways):
    """One set, word by word: what `_touch` hands back carries the dirty pieces that the oracle's victim had."""
    oracle, words = naive.LruCache(cache(1, ways)), np.zeros(ways, np.uint32)
    for tag, halves, dirty in touches:
        pieces, wanted = ({bit for bit in range(4) if mask >> bit & 1} for mask in (dirty, halves))
        lacking, victim = oracle.touch(tag, pieces, wanted)
        marks = halves << DIRTY_BITS | dirty
        gone = _touch(words, None, 0, ways, (tag + 1) << MARK_BITS | marks, 0)
        assert (gone == HIT) == (lacking == 0)
        if lacking:
            assert _fetched(gone, marks) == lacking
            assert {bit for bit in range(4) if gone >> bit & 1} == (victim[1] if victim else set())
    held = sum(int(word & 15).bit_count() for word in words)
    assert held == sum(len(pieces) for lines in oracle.sets.values() for pieces in lines.values())


@settings(max_examples=100, deadline=None)
@given(
    touches=st.lists(st.tuples(st.integers(0, 5), st.integers(1, 3), st.integers(0, 15)), max_size=60),
    ways=st.integers(1, 4),
)
@example([(0, 1, 0), (0, 2, 15), (1, 3, 0), (0, 2, 15)], 2)  # every mark differs
def test_the_filler_of_a_line_moves_along_and_is_told_at_a_hit(touches, ways):
    oracle, filled_by, own = naive.LruCache(cache(1, ways)), {}, slice(ways, 2 * ways)
    words, filler = np.arange(3 * ways, dtype=np.uint32), np.arange(3 * ways, dtype=np.int32)  # and a set on each side
    words[own] = filler[own] = 0
    plain, beside = words.copy(), np.delete(filler, own)
    for by, (tag, halves, dirty) in enumerate(touches, 1):
        pieces, wanted = ({bit for bit in range(4) if mask >> bit & 1} for mask in (dirty, halves))
        lacking, _ = oracle.touch(tag, pieces, wanted)
        word = (tag + 1) << MARK_BITS | halves << DIRTY_BITS | dirty
        found = int(_touch(words, filler, ways, ways, word, by))
        assert found & WORD == int(_touch(plain, None, ways, ways, word, 0)) & WORD
        assert words.tolist() == plain.tolist()
        if lacking == 0:
            assert found >> 32 == filled_by[tag]
        else:
            filled_by[tag] = by
    held = [int(word) >> MARK_BITS for word in words[own] if word]
    assert filler[own][: len(held)].tolist() == [filled_by[tag - 1] for tag in held]
    assert np.delete(words, own).tolist() == np.delete(filler, own).tolist() == beside.tolist()


def test_an_empty_stream_has_no_hits():
    assert replay_lru(np.array([], int), cache(4, 2)).tolist() == []


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
