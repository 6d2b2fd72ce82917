"""Do the families for kernels that are no GEMM give each XCD what they say?"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from swizzle_sim.language import Grid, Swizzle, condition_of, family, holds
from xcd_model.errors import NotBijective


def ids_of(spec, grid, num_xcds=8):
    return Swizzle.parse(family(spec)).permutation(grid, num_xcds)


def heads_of(spec, blocks, heads, num_xcds=8):
    """(num_pids,) head and query block of each workgroup on FlashAttention-2's grid."""
    return np.divmod(ids_of(spec, Grid((blocks, heads)), num_xcds), blocks)


@given(st.integers(1, 20), st.integers(1, 6), st.integers(1, 8))
def test_swizzled_head_first_runs_consecutive_heads_of_an_xcd_one_by_one(blocks, share, num_xcds):
    head, block = heads_of("head_first_swizzled", blocks, share * num_xcds, num_xcds)
    for xcd in range(num_xcds):
        np.testing.assert_array_equal(head[xcd::num_xcds], np.repeat(np.arange(share) + xcd * share, blocks))
        np.testing.assert_array_equal(block[xcd::num_xcds], np.tile(np.arange(blocks), share))


def test_the_published_attention_remap_needs_heads_that_the_xcds_share_evenly():
    assert condition_of("head_first_swizzled") == "num_pid_n % num_xcds == 0 or num_pids == 1"
    for heads in range(1, 33):
        grid = Grid((5, heads))
        assert holds("head_first_swizzled", grid, 8) == (heads % 8 == 0)
        if heads % 8:
            with pytest.raises(NotBijective, match="both compute"):
                ids_of("head_first_swizzled", grid)
        else:
            np.testing.assert_array_equal(ids_of("head_first_swizzled", grid), ids_of("contiguous+column", grid))
        ids_of("contiguous+column", grid)  # the exact form: any number of heads


def test_block_first_orders_put_a_head_on_one_xcd_where_heads_divide():
    for spec, heads_of_xcd_3 in (("block_first", [3, 11]), ("block_first_swizzled", [6, 7])):
        head, block = heads_of(spec, 5, 16)
        assert sorted(set(head[3::8])) == heads_of_xcd_3
        assert list(block[3::8]) == sorted(block[3::8])


def test_head_groups_keep_the_heads_of_one_key_head_together():
    head, block = heads_of("head_groups(size=4)", 3, 64)
    assert sorted(set(head[5::8])) == list(range(40, 48))
    assert list(zip(block[5:104:8], head[5:104:8], strict=True))[:5] == [(0, 40), (0, 41), (0, 42), (0, 43), (1, 40)]
    ids_of("head_groups(size=7)", Grid((3, 50)))


@pytest.mark.parametrize("n", [64, 65, 255, 256, 1000])
def test_row_bands_are_runs_in_turn_and_balanced(n):
    ids = ids_of("row_bands(rows=16)", Grid((n,)))
    turns = n // 8 // 16
    for xcd in range(8):
        mine = ids[xcd::8]
        for turn in range(turns):
            first = (turn * 8 + xcd) * 16
            np.testing.assert_array_equal(mine[turn * 16 : turn * 16 + 16], np.arange(first, first + 16))
        tail = mine[turns * 16 :]
        np.testing.assert_array_equal(np.diff(tail), 1)


def test_column_panels_deal_whole_panels():
    ids = ids_of("column_panels(width=2)", Grid((10 * 32,), (10, 32)))
    rows, cols = np.divmod(ids, 32)
    for xcd in range(8):
        assert sorted(set(cols[xcd::8])) == [2 * xcd, 2 * xcd + 1, 16 + 2 * xcd, 17 + 2 * xcd]
        assert list(rows[xcd::8][:6]) == [0, 0, 1, 1, 2, 2]


def test_blocks_behind_contiguous_are_one_block_an_xcd():
    ids = ids_of("contiguous+blocks(rows=8, cols=4, size=2)", Grid((256,), (16, 16)))
    rows, cols = np.divmod(ids, 16)
    for xcd in range(8):
        assert set(rows[xcd::8] // 8) == {xcd // 4} and set(cols[xcd::8] // 4) == {xcd % 4}


def test_boxes_group_the_tiles_of_each_gemm_of_a_batch():
    """Columns along x, rows along y, batch along z: boxes of 1 x G x 1 are group_m(size=G) plane by plane."""
    ids = ids_of("boxes(x=1, y=4, z=1)", Grid((6, 10, 3)))
    plane = ids_of("group_m(size=4)", Grid((60,), (10, 6)))
    np.testing.assert_array_equal(ids, np.concatenate([plane + 60 * z for z in range(3)]))


# The published spellings of "a contiguous run for each XCD", as texts, and where they are bijections.
NAIVE = """
ids_per_xcd = num_pids // num_xcds
pid = (pid % num_xcds) * ids_per_xcd + pid // num_xcds
"""
NAIVE_CEIL = """
ids_per_xcd = tl.cdiv(num_pids, num_xcds)
pid = (pid % num_xcds) * ids_per_xcd + pid // num_xcds
"""
EXACT_TALL = """
ids_per_xcd = (num_pids + num_xcds - 1) // num_xcds
tall = num_pids % num_xcds
if tall == 0:
    tall = num_xcds
xcd = pid % num_xcds
local = pid // num_xcds
if xcd < tall:
    pid = xcd * ids_per_xcd + local
else:
    pid = tall * ids_per_xcd + (xcd - tall) * (ids_per_xcd - 1) + local
"""
EXACT_MIN = """
xcd = pid % num_xcds
pid = xcd * (num_pids // num_xcds) + min(xcd, num_pids % num_xcds) + pid // num_xcds
"""
EXACT_SELECT = """
short = num_pids // num_xcds
extra = num_pids % num_xcds
xcd = pid % num_xcds
first = tl.where(xcd < extra, xcd * (short + 1), extra + xcd * short)
pid = first + pid // num_xcds
"""


@pytest.mark.parametrize("text", [NAIVE, NAIVE_CEIL])
def test_naive_contiguous_forms_fail_on_grids_that_do_not_divide(text):
    swizzle = Swizzle.parse(text)
    for n in range(2, 130):
        if n % 8 == 0:
            np.testing.assert_array_equal(swizzle.permutation(Grid((n,)), 8), ids_of("contiguous", Grid((n,))))
        elif text is NAIVE or (n % 8 < 7 and n > 8):
            with pytest.raises(NotBijective):
                swizzle.permutation(Grid((n,)), 8)


@pytest.mark.parametrize("text", [EXACT_TALL, EXACT_MIN, EXACT_SELECT])
def test_exact_contiguous_forms_are_one_map(text):
    swizzle = Swizzle.parse(text)
    for n in (*range(1, 70), 255, 256, 257, 1000):
        for num_xcds in (1, 2, 3, 6, 8):
            np.testing.assert_array_equal(
                swizzle.permutation(Grid((n,)), num_xcds), ids_of("contiguous", Grid((n,)), num_xcds)
            )
    assert swizzle.verify(Grid((63,)), 8).bijective
