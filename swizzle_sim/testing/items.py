"""pytest's items for swizzles: what a file holds, and functions marked in a test module."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from swizzle_sim.testing.bijective import assert_bijective
from swizzle_sim.testing.files import Target, files_under, targets_of
from swizzle_sim.testing.plugin import MARKER
from swizzle_sim.testing.run import check_target
from xcd_model.errors import SwizzleSimError


class CheckFailed(AssertionError):
    """A swizzle failed; the message is all there is to say."""


class SwizzleFile(pytest.File):
    """One file with swizzles in it."""

    def collect(self) -> list[pytest.Item]:
        """Return one item for each thing to check; a file that cannot be read is one that fails."""
        try:
            targets = targets_of(self.path)
        except SwizzleSimError as error:
            return [SwizzleItem.from_parent(self, name="readable", problem=str(error))]
        return [SwizzleItem.from_parent(self, name=one.function or "bijective", target=one) for one in targets]


class SwizzleItem(pytest.Item):
    """One thing to check."""

    def __init__(self, *, target: Target | None = None, problem: str = "", **kwargs: Any):
        super().__init__(**kwargs)
        self.target, self.problem = target, problem
        self.add_marker(MARKER)

    def runtest(self) -> None:
        """Check it; a Triton function that nobody marked and that cannot be read is passed over."""
        if self.target is None:
            raise CheckFailed(self.problem)
        result = check_target(self.target)
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


class MarkedItem(pytest.Item):
    """A function of a test module with ``@pytest.mark.swizzle``."""

    def __init__(self, *, function: Any, mark: pytest.Mark, **kwargs: Any):
        super().__init__(**kwargs)
        self.function, self.mark = function, mark
        self.add_marker(MARKER)

    def runtest(self) -> None:
        """Check it where the marker's arguments say."""
        assert_bijective(self.function, *self.mark.args, **self.mark.kwargs)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Return the counter-example, without a traceback through this package."""
        known = AssertionError, SwizzleSimError
        return str(excinfo.value) if isinstance(excinfo.value, known) else super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[os.PathLike[str] | str, int | None, str]:
        """File, line counted from 0, and heading."""
        return self.path, self.function.__code__.co_firstlineno - 1, f"swizzle {self.name}"


def items_of(session: pytest.Session, paths: Iterable[Path]) -> list[pytest.Item]:
    """Items of files, and of what is to be checked in folders."""
    found: list[pytest.Item] = []
    for path in files_under(paths):
        found += SwizzleFile.from_parent(session, path=path).collect()
    return found
