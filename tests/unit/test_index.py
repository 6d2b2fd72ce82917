"""Are linear index functions what their rows say, and are those refused that lose a line?"""

import dataclasses

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests import naive
from tests.machines import small_gpu
from xcd_model import gpu, replay_lru
from xcd_model.errors import SpecError
from xcd_model.spec.caches import complete_rows, fold_rows, hash_table, reduce_rows


@settings(max_examples=100, deadline=None)
@given(
    lines=st.lists(st.integers(0, 2**16), min_size=1, max_size=200),
    upper=st.lists(st.integers(0, 2**16 - 1), min_size=3, max_size=3),
)
def test_hits_under_rows_are_the_dictionarys(lines, upper):
    cache = small_gpu(l2=(8, 2, [1 << bit | mask << 3 for bit, mask in enumerate(upper)])).l2
    assert replay_lru(np.array(lines), cache).tolist() == naive.lru_hits(lines, cache)


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


def test_fewer_rows_need_lowest_bits_of_their_own():
    with pytest.raises(SpecError, match="another lowest bit"):
        small_gpu(l2=(8, 2, [0b011, 0b101]))


def test_a_fold_as_rows_is_the_fold():
    """16 channels of 128 sets, 256 B pieces: the same hits, said in two ways."""
    lines = np.random.default_rng(1).integers(0, 2**18, 20_000) * 3
    fold = small_gpu(l2=(2048, 1, (16, 2))).l2
    rows = small_gpu(l2=(2048, 1, fold_rows(2048, 16, 2))).l2
    assert rows.index == "xor"
    assert replay_lru(lines, fold).tolist() == replay_lru(lines, rows).tolist()


def test_rows_are_reduced_to_low_bits_and_tag_bits():
    assert reduce_rows([0b1011, 0b0110]) == [0b11, 0b01]


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([0b1001, 0b1001], "line bit 1 is lost"),
        ([0b0100, 0b0010], "line bit 0 is lost"),
    ],
)
def test_rows_that_lose_a_line_are_refused(rows, says):
    with pytest.raises(SpecError, match=says):
        reduce_rows(rows)


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


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"index_rows": (128, 256, 128 + 512)}, "not as many as set bits must each have another lowest bit"),
        ({"index_rows": (0b11 << 7,), "size_bytes": 3 * 2 * 128}, "must be a power of two"),
        ({"index_rows": (128, 64)}, "none of them within a line"),
        ({"index_rows": (128, 128 + 1)}, "none of them within a line"),
        ({"index_rows": (128, "256")}, "must be a mask"),
        ({"index_rows": (128, 128)}, "line bit 1 is lost"),
        ({"index_rows": None}, "index_rows = None must be given"),
        ({"index": "modulo"}, "must be left out"),
    ],
)
def test_descriptions_with_bad_rows_are_refused(change, says):
    cache = small_gpu(l2=(4, 2, [1, 2])).l2
    with pytest.raises(SpecError, match=says):
        dataclasses.replace(cache, **change)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"index_channels": 12}, "index_channels = 12 must be a power of two"),
        ({"index_channels": None}, "index_channels = None must be given"),
        ({"index": "modulo"}, "index_channels = 4 must be left out"),
        ({"index": "xor"}, "index_channels = 4 must be left out"),
    ],
)
def test_descriptions_with_a_bad_fold_are_refused(change, says):
    cache = small_gpu(l2=(8, 2, (4, 1))).l2
    with pytest.raises(SpecError, match=says):
        dataclasses.replace(cache, **change)
