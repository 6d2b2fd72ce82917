"""Do dots and bars say what they are, and is code coloured, without a text becoming markup?"""

from __future__ import annotations

import html
import re
from xml.etree import ElementTree

import numpy as np
import pytest

from swizzle_sim.report import figures
from swizzle_sim.report.figures import give_titles
from swizzle_sim.report.page import LONGEST_COLOURED, coloured
from swizzle_sim.report.pictures import inline_svg

HOSTILE = "</title><script>alert(1)</script>\u202e"


def picture(count, *, rasterized=False, titles=None):
    figure = figures.figure_of(4, 3)
    axes = figure.subplots()
    (dots,) = axes.plot(np.arange(count), np.arange(count) ** 2, "o", rasterized=rasterized)
    give_titles(dots, titles or [f"{at}: {HOSTILE}" for at in range(count)])
    bars = axes.bar([1, 2], [3, 4])
    for at, bar in enumerate(bars):
        give_titles(bar, [f"bar {at}"])
    return inline_svg(figure, "p", {})


def said(svg):
    tree = ElementTree.fromstring(svg)
    name = "{http://www.w3.org/2000/svg}" if "xmlns=" in svg else ""
    return [one.text for one in tree.iter(f"{name}title")]


def test_each_dot_and_bar_has_its_title_and_no_title_is_markup():
    found = said(picture(5))
    dots = [one for one in found if not one.startswith("bar")]
    assert [one.split(":")[0] for one in dots] == list("01234") and set(found) - set(dots) == {"bar 0", "bar 1"}
    assert all("<script>" in one and "\\u{202e}" in one for one in dots)
    assert "<script" not in picture(5)


def test_dots_that_are_an_image_or_miscounted_have_no_title():
    assert set(said(picture(5, rasterized=True))) == {"bar 0", "bar 1"}
    assert set(said(picture(5, titles=["one", "two"]))) == {"bar 0", "bar 1"}


@pytest.mark.parametrize("language", ["python", "cpp"])
@pytest.mark.parametrize(
    "text",
    [
        "pid = pid // 8  # <b>\nif x:\n    pid = 'a'\n",
        HOSTILE,
        "int f(int a) { return a / 2; } // \x1b[2J",
        "",
        "\n\n a\r\nb",
    ],
)
def test_coloured_code_is_the_text(text, language):
    from swizzle_sim.base.text import visible

    shown = str(coloured(text, language))
    assert html.unescape(re.sub(r"</?span[^<>]*>", "", shown)) == visible(text)
    assert set(re.findall(r"<[^>]*>", shown)) <= {"</span>", *(f'<span class="{one}">' for one in "kcsmf")}


def test_keywords_numbers_and_comments_have_their_colour_and_long_texts_none():
    shown = str(coloured("def f(a):\n    return a // 8  # note", "python"))
    for style, piece in (("k", "def"), ("f", "f"), ("m", "8"), ("c", "# note")):
        assert f'<span class="{style}">{piece}</span>' in shown
    assert "<span" not in str(coloured("def " * LONGEST_COLOURED, "python"))
