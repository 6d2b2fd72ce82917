"""Is each published family the map that it is said to be, and a bijection exactly where it says?"""

import contextlib
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swizzle_sim.language import (
    FAMILIES,
    Grid,
    Swizzle,
    condition_of,
    family,
    holds,
    is_spec,
    parse_form,
    parse_spec,
    spec_of,
)
from tests import naive_families
from xcd_model.errors import LanguageError, NotBijective, SizeError, UnknownName

PLACEMENTS, ORDERS, BOX_ORDERS = ([name for name, one in FAMILIES.items() if one.axes == axes] for axes in (0, 2, 3))


def permutation(spec, grid, num_xcds):
    """Tile of each workgroup, or None where the swizzle is no bijection."""
    return permutation_or_none(Swizzle.parse(family(spec)), grid, num_xcds)


def permutation_or_none(swizzle, grid, num_xcds):
    try:
        return swizzle.permutation(grid, num_xcds)
    except NotBijective:
        return None


def as_ids(tiles, grid):
    """Oracle's tiles as the linear ids of a grid."""
    if not isinstance(tiles[0], tuple):
        return tiles
    if len(grid.launch) == 3:
        gx, gy, _ = grid.launch
        return [x + gx * (y + gy * z) for x, y, z in tiles]
    rows, cols = grid.shape
    return [m * cols + n if grid.tiles else m + rows * n for m, n in tiles]


@st.composite
def specs(draw, orders=tuple(ORDERS)):
    """One to two placements and perhaps an order, parameters mostly small."""
    names = draw(st.lists(st.sampled_from(PLACEMENTS), max_size=2))
    names += draw(st.lists(st.sampled_from(orders), min_size=not names, max_size=1))
    parts = []
    for name in names:
        rules = FAMILIES[name].parameters
        drawn = {
            key: draw(st.integers(rule.low, min(40, rule.high)) | st.just(rule.high)) for key, rule in rules.items()
        }
        parts.append((name, drawn))
    return parts


@st.composite
def grids(draw):
    rows, cols = draw(st.integers(1, 24)), draw(st.integers(1, 24))
    return Grid((rows * cols,), (rows, cols)) if draw(st.booleans()) else Grid((rows, cols))


boxes = st.tuples(*[st.integers(1, 9)] * 3).map(Grid)


@settings(max_examples=250, deadline=None)
@given(st.data(), st.one_of(grids(), boxes), st.integers(1, 12))
def test_a_spec_is_its_oracle_exactly_where_it_holds(data, grid, num_xcds):
    parts = data.draw(specs(BOX_ORDERS if len(grid.launch) == 3 else ORDERS))
    spec = spec_of(parts)
    found = permutation(spec, grid, num_xcds)
    assert (found is not None) == holds(spec, grid, num_xcds)
    if found is not None:
        wanted = naive_families.tiles_of(parts, grid.shape or grid.launch, num_xcds)
        np.testing.assert_array_equal(found, as_ids(wanted, grid))


@pytest.mark.parametrize("name", ORDERS)
def test_an_order_is_a_bijection_of_every_small_grid_where_it_holds(name):
    swizzle = Swizzle.parse(family(name))
    for rows in range(1, 20):
        for cols in range(1, 20):
            for grid in (Grid((rows * cols,), (rows, cols)), Grid((rows, cols))):
                assert (permutation_or_none(swizzle, grid, 8) is not None) == holds(name, grid, 8), grid


@pytest.mark.parametrize("name", BOX_ORDERS)
def test_a_box_order_is_a_bijection_of_every_small_box(name):
    swizzle = Swizzle.parse(family(name))
    for sides in itertools.product((1, 2, 3, 4, 5, 7, 8, 11), repeat=3):
        swizzle.permutation(Grid(sides), 8)  # raises where it is not


@pytest.mark.parametrize("shape", [(1, 257), (300, 1), (257, 31), (3, 509), (64, 64), (127, 128)])
@pytest.mark.parametrize("name", ["morton", "hilbert"])
def test_curves_on_skinny_prime_and_larger_grids(name, shape):
    grid = Grid((shape[0] * shape[1],), shape)
    np.testing.assert_array_equal(
        permutation(name, grid, 8), as_ids(naive_families.tiles_of([(name, {})], shape, 8), grid)
    )


@pytest.mark.parametrize("name", PLACEMENTS)
def test_a_placement_is_a_bijection_exactly_where_it_holds(name):
    swizzle = Swizzle.parse(family({"chunked": "chunked(chunk=3)", "row_bands": "row_bands(rows=3)"}.get(name, name)))
    for num_pids in range(1, 70):
        for num_xcds in range(1, 12):
            grid = Grid((num_pids,))
            bijective = permutation_or_none(swizzle, grid, num_xcds) is not None
            assert bijective == holds(name, grid, num_xcds), (num_pids, num_xcds)


def test_the_condition_of_a_spec_is_that_of_its_parts():
    assert condition_of("contiguous_naive+group_m") == "num_pids % num_xcds == 0 or num_pids == 1"
    assert condition_of("contiguous+group_m") == "always"
    assert condition_of("head_first_swizzled") == "num_pid_n % num_xcds == 0 or num_pids == 1"


def test_an_order_holds_on_no_grid_without_tiles():
    assert not holds("row", Grid((64,)), 8)
    assert not holds("hilbert", Grid((4, 4, 4)), 8)
    assert not holds("boxes", Grid((4, 4)), 8)
    assert holds("boxes", Grid((4, 4, 4)), 8)
    assert holds("chunked", Grid((4, 4, 4)), 8)
    with pytest.raises(SizeError):
        holds("row", Grid((8, 8)), 0)


@pytest.mark.parametrize("side", [2, 4, 8, 16, 32, 64])
def test_neighbours_on_the_hilbert_curve_touch(side):
    ids = permutation("hilbert", Grid((side * side,), (side, side)), 8)
    steps = np.abs(np.diff(ids // side)) + np.abs(np.diff(ids % side))
    assert (steps == 1).all()


@pytest.mark.parametrize("grid", [Grid((99,), (9, 11)), Grid((9, 11))])
def test_identities_between_families(grid):
    def same(one, other):
        np.testing.assert_array_equal(permutation(one, grid, 8), permutation(other, grid, 8))

    same("group_m(size=1)", "row")
    same("group_m(size=9)", "column")
    same("group_m(size=65536)", "column")
    same("group_n(size=1)", "column")
    same("group_n(size=11)", "row")
    same("windowed(chunk=2, window=3)", "chunked(chunk=2)+group_m(size=3)")
    same("identity+snake", "snake")
    same("block_first", "row")
    same("head_first", "column")
    same("head_groups(size=1)", "contiguous+column")
    same("head_groups(size=4, walk=2)", "contiguous+longest_first(size=4)")
    same("head_groups(size=4, walk=3)", "contiguous+paired(size=4)")
    same("reverse+reverse+row", "row")
    same("panel_snake(width=65536)", "row")
    same("blocks(rows=65536, cols=65536, size=3)", "group_m(size=3)")
    same("blocks(rows=3, cols=1, size=3)", "group_m(size=3)")
    same("morton_blocks(rows=65536, cols=65536)", "morton")
    same("row_bands(rows=65536)+row", "contiguous+row")
    same("column_panels(width=65536)", "contiguous+row")


def test_boxes_group_the_tiles_of_each_gemm_of_a_batch():
    """Columns along x, rows along y, batch along z: boxes of 1 x G x 1 are group_m(size=G) plane by plane."""
    ids = permutation("boxes(x=1, y=4, z=1)", Grid((6, 10, 3)), 8)
    plane = permutation("group_m(size=4)", Grid((60,), (10, 6)), 8)
    np.testing.assert_array_equal(ids, np.concatenate([plane + 60 * z for z in range(3)]))


def test_every_family_is_documented_and_reads_what_it_says():
    for name, one in FAMILIES.items():
        form = parse_form(family(name))
        assert form.results == one.results
        counts = {"num_pid_m", "num_pid_n"} if one.axes < 3 else {"num_pid_x", "num_pid_y", "num_pid_z"}
        assert set(form.inputs) <= {"pid", "num_pids", "num_xcds", *counts}
        assert one.name == name and one.summary.endswith(".") and one.source
        assert all(rule.low <= rule.default <= rule.high and rule.doc for rule in one.parameters.values())


@given(specs())
def test_spec_of_undoes_parse_spec(parts):
    spec = spec_of(parts)
    assert is_spec(spec)
    assert [(one.name, params) for one, params in parse_spec(spec)] == parts
    assert spec_of(parse_spec(spec)) == spec


def test_defaults_are_filled_in_and_blanks_do_not_matter():
    assert spec_of(parse_spec(" contiguous + group_m ( size = 4 ) ")) == "contiguous+group_m(size=4)"
    assert spec_of(parse_spec("windowed(window=2)")) == "windowed(chunk=64, window=2)"
    assert spec_of([(FAMILIES["group_m"], {})]) == "group_m(size=8)"


@pytest.mark.parametrize(
    ("spec", "code", "says"),
    [
        ("group_m(size=0)", "parameter", "from 1 to 65536"),
        ("group_m(size=65537)", "parameter", "from 1 to 65536"),
        ("group_m(size=8.5)", "parameter", "is an integer"),
        ("group_m(size=" + "9" * 500 + ")", "parameter", "is an integer"),
        ("group_m(size=\u0668)", "parameter", "is an integer"),
        ("group_m(8)", "parameter", "size=integer"),
        ("group_m(size=8,)", "parameter", "not parameter=integer"),
        ("group_m(size=8, size=4)", "parameter", "twice"),
        ("row+contiguous", "result", "contiguous cannot follow"),
        ("row+column", "result", "column cannot follow"),
        ("boxes+row", "result", "boxes assigns pid_x, pid_y, pid_z, so row cannot follow"),
        ("contiguous+", "syntax", "not a spec"),
        ("", "syntax", "not a spec"),
        ("contiguous\npid = 0", "syntax", "not a spec"),
        ("contiguous" + "+contiguous" * 100, "syntax", "not a spec"),
    ],
)
def test_a_bad_spec_is_refused(spec, code, says):
    with pytest.raises(LanguageError, match=says) as caught:
        family(spec)
    assert caught.value.code == code
    assert len(str(caught.value)) < 400


@given(st.text(alphabet="abcontiguous_(=1,)+ \n\t", max_size=60) | st.text(max_size=60))
def test_any_text_parses_or_is_refused(text):
    with contextlib.suppress(LanguageError, UnknownName):
        parse_form(family(text))


@pytest.mark.parametrize(
    ("theirs", "ours", "shape"),
    [
        ("wgm", "group_m(size=8)", (37, 29)),
        ("wgm(size=0)", "row", (5, 9)),
        ("wgm(size=-1)", "row", (5, 9)),
        ("wgm(size=4, xcc=8, group=0)", "contiguous+group_m(size=4)", (24, 31)),
        ("wgm(size=4, xcc=8, group=-1)", "chunked(chunk=38)+group_m(size=4)", (38, 32)),
        ("wgm(size=6, xcc=8, group=32)", "chunked(chunk=4)+group_m(size=6)", (32, 20)),
        ("xcd_swizzle(group=0)", "column", (7, 12)),
    ],
)
def test_names_of_amds_libraries_are_these_orders(theirs, ours, shape):
    grid = Grid((shape[0] * shape[1],), shape)
    np.testing.assert_array_equal(permutation(theirs, grid, 8), permutation(ours, grid, 8))


def test_a_negative_wgm_is_no_mirror_and_xcd_swizzle_counts_ids_along_n():
    """By hand: columns in pairs, whose four ids in launch order get the tiles of the pair row by row."""
    grid = Grid((6,), (2, 3))
    assert permutation("wgm(size=-2)", grid, 8).tolist() == [0, 3, 2, 1, 4, 5]
    shape = (12, 10)
    shared = permutation("xcd_swizzle(group=4)", Grid((120,), shape), 8).reshape(-1, 12)[0]  # ids 0 to 11: tiles (m, 0)
    assert shared.tolist() == [tile for tile in as_ids(naive_families.xcd_swizzle(*shape, 4), Grid((120,), shape))[:12]]
    assert not np.array_equal(shared, permutation("contiguous+group_m(size=4)", Grid((120,), shape), 8)[:12])
