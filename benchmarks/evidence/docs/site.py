"""Hooks of the documentation site: folders in the navigation, and notebooks.

mkdocs loads this file by its path (``hooks`` in ``mkdocs.yml``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from html import unescape
from pathlib import Path
from typing import Any

from swizzle_benchmarks.evidence.docs.notebook_pages import notebook_pages


def on_config(config: Any) -> Any:
    """Fill the navigation from what is there."""
    docs = Path(config["docs_dir"])
    config["nav"] = complete(config["nav"], docs, notebook_pages())
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the notebooks."""
    from mkdocs.structure.files import File

    for path, text in notebook_pages().items():
        files.append(File.generated(config, path, content=text))
    return files


WIDEST = 80  # characters of a line of code beside both columns at 1200 px
_OPTION = re.compile(r"(?<=[ \[(>])--[a-z][\w-]*")


def on_page_content(html: str, **_: Any) -> str:
    """Keep options of commands whole, and comments near their commands where their column is too far away."""
    return re.sub(r"<(pre|code)>.*?</\1>", lambda code: _readable(code[0]), html, flags=re.S)


def _readable(code: str) -> str:
    lines = re.sub(r"<[^>]*>", "", unescape(code)).splitlines()
    if max(map(len, lines), default=0) > WIDEST:
        code = re.sub(r"(?<=\S) {3,}(?=# )", "  ", code)
    return _OPTION.sub(r'<span class="option">\g<0></span>', code)


NARROWER = {"76.234375em": "68.734375em", "76.25em": "68.75em"}  # where the navigation is beside


def on_post_build(config: Any) -> None:
    """Keep the navigation beside the text from 1100 px on, where the theme does so from 1220 px."""
    for path in (Path(config["site_dir"]) / "assets").rglob("*.min.*s"):
        text = path.read_text(encoding="utf-8")
        for wide, narrow in NARROWER.items():
            text = text.replace(wide, narrow)
        path.write_text(text, encoding="utf-8")


def complete(nav: list[Any], docs: Path, generated: Iterable[str] = ()) -> list[Any]:
    """Navigation with each folder (``name/``) replaced by its pages.

    ``generated`` are pages made while building, by path below ``docs``. Pages that do not exist stay, so that a strict
    build names them.
    """
    made = list(generated)
    return _each(nav, lambda path: _pages(path, docs, made))


def _pages(path: str, docs: Path, made: list[str]) -> str | list[str] | None:
    return _in_folder(path, docs, made) if path.endswith("/") else path


def _in_folder(path: str, docs: Path, made: list[str]) -> list[str] | None:
    there = {page.relative_to(docs).as_posix() for page in (docs / path).glob("*.md")}
    found = sorted(there | {page for page in made if page.startswith(path)})
    first = [page for page in found if page == f"{path}index.md"]
    return [*first, *(page for page in found if page not in first)] or None


def _each(nav: Iterable[Any], change: Callable[[str], Any]) -> list[Any]:
    kept: list[Any] = []
    for entry in nav:
        if isinstance(entry, str):
            changed = change(entry)
            kept += changed if isinstance(changed, list) else [changed] if changed else []
            continue
        (title, what), *_ = entry.items()
        changed = _each(what, change) if isinstance(what, list) else change(what)
        if changed:
            kept.append({title: changed})
    return kept
