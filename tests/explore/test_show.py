"""Do figures stand as they should, and does text stay text?"""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from swizzle_sim.explore import show
from swizzle_sim.explore.evaluate import Evaluator, Problem, Result, cards, small_map
from swizzle_sim.explore.show import COLUMNS, cells, changes, verdict_words
from swizzle_sim.explore.state import State
from swizzle_sim.language import FAMILIES
from swizzle_sim.report.display.colours import XCDS, xcd_colour
from swizzle_sim.report.display.tiles import map_png


@pytest.fixture(scope="module")
def result():
    sizes = (("M", 1024), ("N", 1024), ("K", 256), ("BLOCK_M", 128), ("BLOCK_N", 128))
    return Evaluator(compile=False).evaluate(State(sizes=sizes, swizzle="group_m(size=2)"))


def test_pictures_have_the_colours_of_the_xcds():
    xcd = np.array([[0, 3, 8], [-1, 17, 1]])
    image = np.asarray(Image.open(io.BytesIO(map_png(xcd, 18))).convert("RGBA"))
    assert image.shape == (2, 3, 4)
    for (row, column), x in np.ndenumerate(xcd):
        red, green, blue, alpha = image[row, column]
        assert alpha == (0 if x < 0 else 255)
        if x >= 0:
            assert f"#{red:02x}{green:02x}{blue:02x}" == xcd_colour(x)
    assert len({xcd_colour(x) for x in range(24)}) == 24
    assert tuple(xcd_colour(x) for x in range(8)) == XCDS


def test_the_gallery_has_every_family_with_its_map():
    found = cards()
    assert list(found) == list(FAMILIES)
    assert {Image.open(io.BytesIO(png)).size for png in found.values()} == {(16, 16)}
    assert (small_map("column") == np.arange(16)[:, None] % 8).all()
    assert (small_map("contiguous") == np.arange(16)[:, None] // 2).all()


def test_figures_are_those_of_the_scores(result):
    before, after = result.baseline, result.score
    assert len(cells(before)) == len(changes(before, after)) == len(COLUMNS)
    assert cells(after)[0] == f"{100 * after.l2_hit_rate:.1f} %"
    points = round(100 * (after.l2_hit_rate - before.l2_hit_rate), 1)
    text, tone = changes(before, after)[0]
    assert (text == f"{points:+.1f} pt".replace("-", "−") or (points == 0 and text == "no change")) and tone == np.sign(
        points
    )
    assert set(cells(None)) == {"–"} and {text for text, _ in changes(before, None)} == {"–"}


def test_a_map_says_what_it_shows(result):
    text = str(show.maps(result))
    assert "data-rows='8'" in text and "8 × 8 tiles" in text
    assert "data-rows" not in str(show.maps(Result(state=State())))


def test_hidden_characters_of_a_message_are_spelt_out_and_long_ones_cut():
    _, _, (line,) = verdict_words(
        Result(state=State(), problem=Problem(code="syntax", message="a\u202eb\x1b" + "x" * 9999))
    )
    assert line.startswith("a\\u{202e}b\\u{1b}x") and len(line) < 1300
