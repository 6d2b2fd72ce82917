"""The pytest plugin: ``--swizzle-check PATH``, the ini option ``swizzle_check`` and the marker ``swizzle``.

pytest loads this module in every run of everybody who has swizzle-sim installed, so it imports nothing but pytest
until there is something to check.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

MARKER = "swizzle"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option and the ini key."""
    group = parser.getgroup("swizzle-sim")
    group.addoption(
        "--swizzle-check",
        action="append",
        default=[],
        metavar="PATH",
        help="check the swizzles in this file or folder too: texts, @triton.jit functions, functions marked by a "
        "'# swizzle-check' comment (repeatable; -m swizzle runs them alone)",
    )
    parser.addini("swizzle_check", "files and folders whose swizzles every run checks", type="paths", default=[])


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line(
        "markers", f"{MARKER}(**arguments): the function is a swizzle, to be checked as assert_bijective checks it"
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    """Add what is asked for, before other plugins choose among the items."""
    asked = [config.invocation_params.dir / path for path in config.getoption("--swizzle-check")]
    paths = [*asked, *config.getini("swizzle_check")]
    if paths:
        from swizzle_sim.testing.items import items_of  # noqa: PLC0415 - only where there is something to check

        items += items_of(session, paths)


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(collector: Any, name: str, obj: object) -> list[pytest.Item] | None:
    """Take a marked function of a test module as a swizzle, unless it is itself a test."""
    if type(obj) is not FunctionType or collector.funcnamefilter(name):
        return None
    marks = [mark for mark in _marks(obj) if mark.name == MARKER]
    if not marks:
        return None
    from swizzle_sim.testing.items import MarkedItem  # noqa: PLC0415

    return [MarkedItem.from_parent(collector, name=name, function=obj, mark=marks[0])]


def _marks(function: FunctionType) -> Iterator[pytest.Mark]:
    given = vars(function).get("pytestmark", [])
    yield from (mark for mark in given if isinstance(mark, pytest.Mark)) if isinstance(given, list) else ()


def pytest_report_header(config: pytest.Config) -> str | None:
    """Say which paths are checked."""
    paths = [*config.getoption("--swizzle-check"), *map(str, map(Path, config.getini("swizzle_check")))]
    return f"swizzle-check: {', '.join(paths)}" if paths else None
