"""The pytest plugin: ``--swizzle-check PATH``, the ini option ``swizzle_check`` and the marker ``swizzle``.

pytest loads this module in every run of everybody who has swizzle-sim installed, so it imports nothing but pytest
until there is something to check: hence the imports inside functions.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
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
    parser.addini(
        "swizzle_exclude", "what of these folders to leave out, as in .gitignore", type="linelist", default=[]
    )


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line("markers", f"{MARKER}: a swizzle that --swizzle-check or swizzle_check names")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    """Add the requested checks, before other plugins choose among the items."""
    typed = [config.invocation_params.dir / path for path in config.getoption("--swizzle-check")]
    paths = [*typed, *config.getini("swizzle_check")]
    if paths:
        from swizzle_sim.testing.folders import files_under  # noqa: PLC0415

        for path in files_under(paths, exclude=config.getini("swizzle_exclude")):
            items += SwizzleFile.from_parent(session, path=path).collect()


def pytest_report_header(config: pytest.Config) -> str | None:
    """Say which paths are checked."""
    paths = [*config.getoption("--swizzle-check"), *map(str, map(Path, config.getini("swizzle_check")))]
    return f"swizzle-check: {', '.join(paths)}" if paths else None


class CheckFailed(AssertionError):
    """A swizzle failed; the message holds all of it."""


class SwizzleFile(pytest.File):
    """One file with swizzles in it."""

    def collect(self) -> list[pytest.Item]:
        """Return one item for each thing to check; a file that cannot be read is one that fails."""
        from swizzle_sim.testing.files import targets_of  # noqa: PLC0415
        from xcd_model.errors import SwizzleSimError  # noqa: PLC0415

        try:
            targets = targets_of(self.path)
        except SwizzleSimError as error:
            return [SwizzleItem.from_parent(self, name="readable", problem=str(error))]
        return [SwizzleItem.from_parent(self, name=one.function or "bijective", target=one) for one in targets]


class SwizzleItem(pytest.Item):
    """One thing to check."""

    def __init__(self, *, target: Any = None, problem: str = "", **kwargs: Any):
        super().__init__(**kwargs)
        self.target, self.problem = target, problem
        self.add_marker(MARKER)

    def runtest(self) -> None:
        """Check it; an unmarked Triton function that cannot be read is skipped."""
        if self.target is None:
            raise CheckFailed(self.problem)
        from swizzle_sim.testing.run import check_target  # noqa: PLC0415

        result = check_target(replace(self.target, is_called=True))
        if result.status == "skipped":
            pytest.skip(result.message.partition("\n")[0])
        if result.status != "passed":
            raise CheckFailed(result.message)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Return the counter-example, without a traceback through this package."""
        return str(excinfo.value) if isinstance(excinfo.value, CheckFailed) else super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[os.PathLike[str] | str, int | None, str]:
        """File, line counted from 0, and heading."""
        return self.path, (self.target.line if self.target else 1) - 1, f"swizzle {self.name}"
