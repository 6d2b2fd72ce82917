"""Do the paper's listings parse as printed, and which tiles do they compute on launches they are meant for?"""

import numpy as np
import pytest

from swizzle_benchmarks.evidence.paper.formulas import LISTINGS
from swizzle_sim.language import Grid, Swizzle, family, parse_form, verify
from xcd_model.errors import NotBijective

_STENCIL = {"M": 8192, "N": 8192, "BLOCK_SIZE_M": 32, "BLOCK_SIZE_N": 32}
_TRANSPOSE = {"M": 32768, "N": 32768, "BLOCK_SIZE_M": 32, "BLOCK_SIZE_N": 32}
_FDTD = {"Nx": 8192, "Ny": 8192, "BLOCK_SIZE_X": 32, "BLOCK_SIZE_Y": 32}

# figure: text, grid, sizes
FIGURES = {
    6: (LISTINGS[6], Grid((20480,)), {"M": 20480}),
    7: (LISTINGS[7], Grid((32768,)), {}),
    8: (LISTINGS[8], Grid((256, 256)), _FDTD),
    9: (LISTINGS[9], Grid((256, 256)), _STENCIL),
    10: (LISTINGS[10], Grid((1024, 1024)), _TRANSPOSE),
    11: (LISTINGS[11], Grid((1024, 1024)), _TRANSPOSE),
    # No grid is printed for these two; the transpose's tiles, launched in one dimension.
    12: (LISTINGS[12], Grid((1024 * 1024,), (1024, 1024)), _TRANSPOSE),
    13: (LISTINGS[13], Grid((1024 * 1024,)), {}),
}


@pytest.mark.parametrize(
    ("number", "distinct"),
    [
        (6, 64),
        (7, 64),
        (8, 2048),
        (9, 256),
        (10, 131072),
        (11, 1024 * 1024),
        (12, 1024 * 1024),
        (13, 1024 * 1024),
    ],
)
def test_the_papers_listings(number, distinct):
    text, grid, sizes = FIGURES[number]
    verdict = verify(Swizzle.parse(text), grid, 8, sizes)
    assert verdict.distinct_tiles == distinct
    assert verdict.bijective == (distinct == grid.num_pids)


@pytest.mark.parametrize("number", FIGURES)
def test_the_papers_listings_parse_as_printed(number):
    text, _, sizes = FIGURES[number]
    form = parse_form(text)
    assert {name for name in form.inputs if "(" not in name} <= set(sizes)


# The published spellings of "a contiguous run for each XCD", as texts, and where they are bijections.
CONTIGUOUS = Swizzle.parse(family("contiguous"))
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
            np.testing.assert_array_equal(swizzle.permutation(Grid((n,)), 8), CONTIGUOUS.permutation(Grid((n,)), 8))
        elif text is NAIVE or (n % 8 < 7 and n > 8):
            with pytest.raises(NotBijective):
                swizzle.permutation(Grid((n,)), 8)


@pytest.mark.parametrize("text", [EXACT_TALL, EXACT_MIN, EXACT_SELECT])
def test_exact_contiguous_forms_are_one_map(text):
    swizzle = Swizzle.parse(text)
    for n in (*range(1, 70), 255, 256, 257, 1000):
        for num_xcds in (1, 2, 3, 6, 8):
            np.testing.assert_array_equal(
                swizzle.permutation(Grid((n,)), num_xcds), CONTIGUOUS.permutation(Grid((n,)), num_xcds)
            )
    assert swizzle.verify(Grid((63,)), 8).bijective
