"""Take the picture of the explorer that ``docs/explore.md`` shows; needs Chromium.

python -m swizzle_benchmarks.evidence.docs.explore_picture [FOLDER]
"""

from __future__ import annotations

import os
import shutil
import sys
import threading
from pathlib import Path
from typing import Literal

PICTURE = "explore.png"
FOLDER = Path(__file__).resolve().parents[3] / "docs" / "pictures"
NAMES = ("chromium", "chromium-browser", "google-chrome")


def main(folder: Path = FOLDER) -> None:
    """Serve the page, and photograph its start."""
    from swizzle_sim.explore.app import Server  # noqa: PLC0415  (an extra, as Playwright is)

    server = Server(port=0)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        photograph(server.address, folder / PICTURE)
    finally:
        server.close()
        thread.join()
    print("written:", folder / PICTURE)


def photograph(address: str, path: Path, *, width: int = 1280, scheme: Literal["light", "dark"] = "light") -> None:
    """Picture of a page of the explorer, whole, once it has its score.

    Parameters
    ----------
    width : int [pixels]
    """
    from playwright.sync_api import sync_playwright

    found = next(filter(None, map(shutil.which, (os.environ.get("SWIZZLE_SIM_CHROMIUM", ""), *NAMES))), None)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found)
        page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        page.goto(address)
        page.wait_for_selector("#figures .better, #figures .worse", timeout=120_000)
        page.wait_for_timeout(300)
        page.screenshot(path=path, full_page=True)
        browser.close()


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
