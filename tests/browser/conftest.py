"""A headless Chromium for the tests of pages: the system's own, driven by Playwright."""

from __future__ import annotations

import os
import shutil

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
VARIABLE = "SWIZZLE_SIM_CHROMIUM"


def chromium() -> str:
    """Path of the browser to drive: what ``SWIZZLE_SIM_CHROMIUM`` names, or the first of `NAMES` that is found."""
    found = next(filter(None, map(shutil.which, (os.environ.get(VARIABLE, ""), *NAMES))), None)
    if found is None:
        one_of = ", ".join(NAMES)
        pytest.skip(f"no browser found: install one of {one_of}, or set {VARIABLE} to its path")
    return found


@pytest.fixture(scope="package")
def browser():
    """Chromium without a window. For this package alone: as long as it lives, ``asyncio.run`` fails in its thread."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=chromium())
        yield running
        running.close()


@pytest.fixture
def page(browser):
    """Give an empty tab of its own context, cut off from all but this machine.

    ``page.complaints`` lists what its console says; a test that expects errors empties it, and what is left fails it.
    """
    context = browser.new_context(viewport={"width": 1280, "height": 900}, service_workers="block")
    context.route(_elsewhere, lambda route: route.abort())
    tab = context.new_page()
    tab.set_default_timeout(120_000)
    tab.complaints = []
    tab.on("console", lambda said: tab.complaints.append(said.text) if said.type in ("error", "warning") else None)
    tab.on("pageerror", lambda error: tab.complaints.append(str(error)))
    yield tab
    complaints = list(tab.complaints)
    context.close()
    assert not complaints


def _elsewhere(address: str) -> bool:
    local = ("http://127.0.0.1:", "http://localhost:", "ws://127.0.0.1:", "ws://localhost:", "file:", "data:", "blob:")
    return not address.startswith(local)
