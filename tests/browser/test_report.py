"""Does the report of a run work where it is read: on a screen, on a phone, in the dark, by keyboard, on paper?"""

from __future__ import annotations

import base64
import json

import numpy as np
import pytest

from swizzle_benchmarks.suite.gemm import gemm
from swizzle_sim.language import Swizzle, family
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.report import write_report
from swizzle_sim.search.history import Attempt, History
from swizzle_sim.search.loop import about_run
from xcd_model import gpu

SIZES = {"M": 8192, "N": 4096, "K": 256, "BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64}  # 64 x 32 tiles: several waves
HOSTILE = "</pre></style></script><script>window.fooled = 1</script><img src=x onerror='window.fooled = 2'>"
SPREAD = "</code><style>body { display: none }</style><svg onload='window.fooled = 3'><a href='javascript:alert(4)'>"


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """Page of a run whose candidates are named and written, and refused, to harm."""
    scorer = Scorer(gemm(**SIZES), gpu("mi300x"), replay="lockstep")
    history = History.create(tmp_path_factory.mktemp("runs") / "run", about_run(scorer, f"swizzle-sim {HOSTILE}"))
    given = [("identity", "identity"), (HOSTILE, "contiguous"), (SPREAD, "contiguous+group_m(size=4)")]
    for number, (name, spec) in enumerate(given):
        swizzle = Swizzle.parse(f"# {HOSTILE}\n{family(spec)}" if number else family(spec))
        verdict = scorer.verify(swizzle).as_dict() | {"code": SPREAD}
        said = {"proposer": SPREAD, "critique": HOSTILE, "score": scorer.score(swizzle)}
        history.append(Attempt(number=number, name=name, source=swizzle.source, verdict=verdict, **said))
    refused = {"verdict": {"bijective": False, "domain": HOSTILE}, "score": None, "critique": SPREAD}
    history.append(Attempt(number=3, name=SPREAD, source=HOSTILE, proposer=HOSTILE, **refused))
    history.set_state("finished")
    with pytest.MonkeyPatch.context() as patch:  # the PNG files beside the page take longer than all the rest
        patch.setattr("swizzle_sim.report.pictures.files", lambda *given: {})
        return write_report(history)


@pytest.fixture
def opened(page, report):
    """Give the page, opened from its file with no network at all."""
    page.context.set_offline(True)
    page.goto(report.as_uri())
    return page


@pytest.mark.parametrize("width", [1280, 390])
def test_every_figure_is_drawn(opened, report, width):
    opened.set_viewport_size({"width": width, "height": 844})
    boxes = [one.bounding_box() for one in opened.locator(".drawn > svg").all()]
    assert len(boxes) == 6  # tiles, misses, over time, XCDs, balance, progress
    assert all(box["height"] > 100 and box["width"] > 300 for box in boxes)
    assert opened.locator("#map-picture image, #misses-picture image").count() >= 4
    lengths = opened.eval_on_selector_all("#over_time-picture path", "all => all.map(path => path.getTotalLength())")
    assert max(lengths) > 100
    bars = opened.eval_on_selector_all(".bar rect.after", "all => all.map(one => one.getBoundingClientRect().width)")
    assert len(bars) == 8 and max(bars) > 30  # power among them
    assert report.stat().st_size < 3_000_000


def test_hostile_text_does_nothing(opened):
    asked = []
    opened.on("dialog", lambda dialog: (asked.append(dialog.message), dialog.dismiss()))
    for link in opened.locator("summary").all():
        if link.is_visible():
            link.click()
    assert opened.evaluate("window.fooled") is None and not asked
    assert opened.locator("img[src='x'], a[href^='javascript']").count() == 0
    assert opened.locator("script").count() == 2 and opened.locator("style").count() == 1
    assert HOSTILE in opened.inner_text("#made ~ dl")
    assert opened.locator("pre", has_text=HOSTILE).count() >= 4
    # and were it written unescaped, the policy would still refuse it
    opened.evaluate("text => document.body.insertAdjacentHTML('beforeend', text)", HOSTILE + SPREAD)
    opened.wait_for_timeout(100)
    assert opened.evaluate("window.fooled") is None and opened.locator("h1").is_visible()
    assert "Content Security Policy" in " ".join(opened.complaints)
    opened.complaints.clear()


def running(opened, at):
    """Tiles of each map that the page shows in full colour."""
    return opened.evaluate(
        """() => [...document.querySelectorAll("#map-picture canvas")].map(canvas => {
            const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d");
            copy.drawImage(canvas, 0, 0);
            const data = copy.getImageData(0, 0, canvas.width, canvas.height).data;
            return [...data].filter((_, i) => i % 4 === 3).map(alpha => alpha === 0);
        })"""
    )[at]


def test_a_table_is_sorted_by_a_click_on_a_head_and_texts_are_copied(opened):
    opened.context.grant_permissions(["clipboard-read", "clipboard-write"])
    rates = "[...document.querySelector('.wide table').tBodies[0].rows].map(row => parseFloat(row.cells[2].innerText))"
    head = opened.locator(".wide th .sort", has_text="L2 hit rate").first
    for order in ("ascending", "descending"):
        head.click()
        assert head.locator("..").get_attribute("aria-sort") == order
        shown = opened.evaluate(rates)
        assert len(shown) == 3 and shown == sorted(shown, reverse=order == "descending")
    text = opened.locator("#s1 pre")
    opened.locator("#s1 .copy").click()
    opened.locator("#s1 .copy", has_text="Copied").wait_for()
    assert opened.evaluate("navigator.clipboard.readText()") == text.evaluate("one => one.textContent")


def test_the_slider_moves_the_map_by_keyboard(opened):
    data = json.loads(opened.inner_text("#schedule"))
    whole = opened.inner_text("#turn-text")
    assert whole.startswith("The whole map") and not opened.locator("#map-picture canvas").first.is_visible()
    opened.keyboard.press("Tab")
    while opened.evaluate("document.activeElement.id") != "turn":
        opened.keyboard.press("Tab")
    opened.keyboard.press("Home")
    texts = [opened.inner_text("#turn-text")]
    for step in range(1, 100):
        opened.keyboard.press("ArrowRight")
        if step % 33:
            continue
        texts.append(opened.inner_text("#turn-text"))
        for i, one in enumerate(data["maps"]):
            begin, end = (np.frombuffer(base64.b64decode(one[key]), np.uint8) for key in ("begin", "end"))
            expected = (begin <= step) & (step < end)
            assert np.array_equal(running(opened, i), expected)
            assert f"{expected.sum()} running" in texts[-1]
    assert len(set(texts)) == 4 and "0 done, " in texts[0]
    assert opened.get_attribute("#turn", "aria-valuetext") == texts[-1]
    plot, canvas = (opened.locator(f"#map-picture {what}").first.bounding_box() for what in ("[id$=plot-0]", "canvas"))
    assert all(abs(plot[key] - canvas[key]) < 1 for key in plot)  # the veil lies on the map
    assert opened.locator(".now").is_visible()
    opened.keyboard.press("End")
    assert opened.inner_text("#turn-text") == whole
    opened.click("#play")
    assert opened.inner_text("#play") == "Stop"


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_wider_than_the_screen(opened, width, scheme):
    opened.emulate_media(color_scheme=scheme)
    opened.set_viewport_size({"width": width, "height": 844})
    opened.eval_on_selector_all("details", "all => all.forEach(one => one.open = true)")
    assert opened.evaluate("document.documentElement.scrollWidth") <= width
    ground, ink = (opened.evaluate(f"getComputedStyle(document.body).{key}") for key in ("backgroundColor", "color"))
    light = [sum(map(int, colour.strip("rgb()").split(", "))) for colour in (ground, ink)]
    assert abs(light[0] - light[1]) > 450 and (light[0] > light[1]) == (scheme == "light")
    heights = opened.eval_on_selector_all(
        ".drawn text", "all => all.map(one => one.getBoundingClientRect().height).filter(height => height > 0)"
    )
    assert min(heights) >= 8  # text of a figure is not shrunk with it


def test_on_paper(opened):
    opened.emulate_media(media="print", color_scheme="dark")
    assert not opened.locator("#slider").is_visible() and not opened.locator("nav").is_visible()
    assert all(opened.locator(f"#s{i}").is_visible() for i in (1, 2, 3))
    assert opened.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert len(opened.pdf(format="A4")) > 100_000
