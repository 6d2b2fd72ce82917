"""Does the explorer show what is typed, keep it in its address, and stay a page whatever is typed?"""

from __future__ import annotations

import io
import re
import threading
import time

import numpy as np
import pytest
from PIL import Image

from swizzle_sim.explore.state import State, read_query

GEMM = "kernel=gemm&M=1024&N=1024&K=256&BLOCK_M=128&BLOCK_N=128&BLOCK_K=64"
BLOCKS = "r = pid // 8\npid_m = pid % 8 // 2 * 2 + r % 2\npid_n = pid % 2 * 4 + r // 2"  # 2 x 4 tiles on each XCD
HOSTILE = "# <img src=x onerror=\"document.title='stolen'\"><script>document.title='stolen'</script>\npid = <b>pid</b>"


@pytest.fixture(scope="module")
def address():
    from swizzle_sim.explore.app import Server

    server = Server(port=0)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    yield server.address
    server.close()
    thread.join()


@pytest.fixture
def explorer(page, address):
    """Open the page at an address; it is ready when its verdict is there."""

    def opened(query=GEMM + "&swizzle=identity"):
        page.goto(f"{address}?{query}")
        page.wait_for_selector("#verdict-box", timeout=120_000)
        return page

    return opened


def until(page, expression, arg=None, *, timeout_s=120):
    """Wait for an expression of the page; Playwright's own way needs ``eval``, which the page's policy forbids."""
    end = time.monotonic() + timeout_s
    while not page.evaluate(expression, arg):
        assert time.monotonic() < end, f"{expression} with {arg!r}; the verdict: {page.inner_text('#verdict')}"
        page.wait_for_timeout(20)


def says(page, words):
    """Wait until the verdict says so."""
    until(page, "words => (document.querySelector('#verdict-box')?.textContent ?? '').includes(words)", words)


def addressed(page, swizzle, *, timeout_s=120):
    """Wait until the address is that of a swizzle; what it says."""
    end = time.monotonic() + timeout_s
    while (state := read_query(page.url.partition("?")[2])).swizzle != swizzle:
        assert time.monotonic() < end, f"the address stays that of {state.swizzle!r}"
        page.wait_for_timeout(20)
    return state


def swizzled_map(page):
    return page.locator("img.map").nth(1).get_attribute("data-xcd")


def test_a_formula_is_typed_and_verdict_map_score_and_address_follow(explorer):
    page = explorer()
    says(page, "A bijection at 64 (8x8 tiles), 8 XCDs")
    before = swizzled_map(page)
    assert before == page.locator("img.map").nth(0).get_attribute("data-xcd")
    assert page.inner_text("#figures tbody tr:first-child td:last-child") == "no change"

    page.fill("#text", BLOCKS[:-4])
    page.focus("#text")
    page.keyboard.press("Control+End")
    page.keyboard.type(BLOCKS[-4:])
    until(page, "before => document.querySelectorAll('img.map')[1]?.dataset.xcd !== before", before)
    says(page, "A bijection")
    assert re.fullmatch(r"[+−][0-9.]+ pt", page.inner_text("#figures tbody tr:first-child td:last-child"))
    shown = np.frombuffer(bytes(page.evaluate("s => [...atob(s)].map(c => c.charCodeAt(0))", swizzled_map(page))), "u1")
    assert all(x == tile // 8 // 2 * 2 + tile % 8 // 4 for tile, x in enumerate(shown)) and shown.size == 64
    assert dict(addressed(page, BLOCKS).sizes)["K"] == 256
    assert page.inner_text("#command").startswith("swizzle-sim score gemm M=1024 N=1024 K=256")

    page.fill("#text", "pid = pid % 32")
    says(page, "Not a bijection")
    assert "pid 32 and pid 0 both compute tile 0" in page.inner_text("#verdict-box")
    assert page.inner_text("#figures tbody tr:first-child td:nth-child(3)") == "–"
    page.hover("img.map >> nth=1", position={"x": 5, "y": 5})
    assert page.inner_text("#under-pointer") == "tile (0, 0): XCD 0 → XCD 0"


def test_hostile_text_is_text(explorer):
    page = explorer()
    page.fill("#text", HOSTILE)
    says(page, "Not in the language")
    assert "<b>pid</b>" in page.inner_text("#verdict-box .message")
    assert page.locator("#verdict-box b, #verdict-box img, #command img").count() == 0
    page.fill("#text", "x" * 70_000)
    until(page, "document.querySelector('#verdict-box').textContent.includes('at most 65536 are read')")
    page.goto(page.url.split("?")[0] + "?kernel=%3Cscript%3Edocument.title=1%3C/script%3E")
    page.wait_for_selector("#notice .notice")
    assert "no kernel is called '<script>" in page.inner_text("#notice")
    assert page.title() == "swizzle-sim explore"


def test_an_address_is_restored_and_back_goes_back(explorer):
    wanted = State(
        sizes=(("M", 512), ("N", 1024), ("K", 256), ("BLOCK_M", 128), ("BLOCK_N", 128), ("BLOCK_K", 64)),
        gpu="mi355x",
        changes=(("xcds", 4), ("l2.size_bytes", 2 << 20)),
        swizzle="# over two lines\npid = num_pids - 1 - pid",
    )
    page = explorer(wanted.query())
    says(page, "A bijection at 32 (4x8 tiles), 4 XCDs")
    assert page.input_value("#text") == wanted.swizzle
    assert page.input_value("#sizes input >> nth=0") == "512"
    assert read_query(page.url.partition("?")[2]) == wanted
    labels = page.locator(".slider-label output").all_inner_texts()
    assert labels == ["4 *", "32", "2 MiB *", "16"]
    assert "--set l2.size_bytes=2MiB" in page.inner_text("#command")

    page.click("button.card:has-text('column_panels')")
    page.wait_for_url("**column_panels**")
    page.go_back()
    until(page, "document.querySelector('#text').value.startsWith('# over two lines')")
    says(page, "A bijection")
    assert read_query(page.url.partition("?")[2]) == wanted


def test_kernel_gpu_and_sliders_by_keyboard(explorer):
    page = explorer()
    page.focus("#own")
    page.keyboard.press("Tab")  # the first slider
    page.keyboard.press("ArrowLeft")
    says(page, "A bijection at 64 (8x8 tiles), 7 XCDs")
    until(page, "document.querySelectorAll('.legend li').length === 7")
    page.click("#own")
    says(page, "A bijection at 64 (8x8 tiles), 8 XCDs")
    page.fill("#sizes input >> nth=0", "all")
    says(page, "No such size")
    page.fill("#sizes input >> nth=0", "2048")
    says(page, "A bijection at 128 (16x8 tiles)")
    page.click("#kernel")
    page.click(".dash-dropdown-option:has-text('softmax')")
    says(page, "A bijection at 4096")
    assert page.locator("#sizes input").count() == 2
    page.click("button.card:has-text('hilbert')")  # needs two axes that softmax has not
    says(page, "A name this kernel does not have")
    assert "elsewhere" in page.locator("button.card:has-text('hilbert')").get_attribute("class")


def test_the_timed_replay_comes_in_the_background_and_with_the_address(explorer):
    page = explorer()
    says(page, "A bijection")
    page.fill("#text", "column")
    page.wait_for_url("**swizzle=column**")
    page.click(".timed-choice label")
    page.wait_for_selector("#timed-figures", timeout=120_000)
    assert "--replay timed" in page.inner_text("#command")
    state = read_query(page.url.partition("?")[2])
    assert (state.replay, state.swizzle) == ("timed", "column")

    page.reload()
    page.wait_for_selector("#timed-figures")
    page.click(".timed-choice label")
    until(page, "!document.querySelector('#timed-box').textContent")


def is_light(page):
    picture = page.screenshot(clip={"x": 0, "y": 0, "width": 200, "height": 200})
    return np.asarray(Image.open(io.BytesIO(picture)).convert("L")).mean() > 128


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_it_fits_its_window_in_light_and_dark(explorer, page, width, scheme):
    page.set_viewport_size({"width": width, "height": 844})
    page.emulate_media(color_scheme=scheme)
    explorer()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert is_light(page) == (scheme == "light")
    page.click("#theme")
    until(
        page,
        "scheme => document.documentElement.dataset.theme && document.documentElement.dataset.theme !== scheme",
        scheme,
    )
    assert is_light(page) != (scheme == "light")


# ---- Does the browser of these tests see what it should, and complain when it should?
def test_errors_of_a_page_are_heard(page):
    page.set_content("<script>console.error('lost'); throw new Error('thrown')</script>")
    assert "lost" in page.complaints and "thrown" in " ".join(page.complaints)
    page.complaints.clear()
