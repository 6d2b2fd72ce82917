"""Hooks of the documentation site: folders in the navigation, notebooks, and pages that other commands write.

mkdocs loads this file by its path (``hooks`` in ``mkdocs.yml``).
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from swizzle_benchmarks.evidence.docs.notebook_pages import notebook_pages

# Written by commands that take minutes (`make fidelity`, `make paper`), or by parts that a checkout may lack.
OPTIONAL = (
    "fidelity.md",
    "fidelity-tables.md",
    "ci.md",
    "explore.md",
    "report.md",
    "uncertainty.md",
    "api/testing.md",
    "paper/index.md",
)
_LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)#:\s]+)(?:#[^)]*)?\)")


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


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Leave the text of links to pages that are not written yet."""
    return unlinked(markdown, page.file.src_uri, Path(config["docs_dir"]))


def unlinked(markdown: str, page: str, docs: Path) -> str:
    """Text without links to optional pages that are absent.

    Parameters
    ----------
    markdown : str
    page : str
        Path of the page below ``docs``.
    docs : Path
    """

    def kept(found: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(page), found[2]))
        return found[1] if target in OPTIONAL and not (docs / target).exists() else found[0]

    return _LINK.sub(kept, markdown)


def complete(nav: list[Any], docs: Path, generated: Iterable[str] = ()) -> list[Any]:
    """Navigation with each folder replaced by its pages, and without optional pages that are absent.

    Parameters
    ----------
    nav : list
        As in ``mkdocs.yml``: paths, or one-entry dicts of title to path, folder (``name/``) or list.
    docs : Path
        The folder of the pages.
    generated : iterable of str
        Pages that are made while building, by path below ``docs``.

    Returns
    -------
    nav : list
        Other pages that do not exist stay in it, so that a strict build names them.
    """
    made = list(generated)
    return _each(nav, lambda path: _pages(path, docs, made))


def _pages(path: str, docs: Path, made: list[str]) -> str | list[str] | None:
    if path.endswith("/"):
        return _in_folder(path, docs, made)
    return None if path in OPTIONAL and not (docs / path).exists() else path


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
