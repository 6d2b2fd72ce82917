"""Checks targets one after the other, for the command line and the pytest plugin."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from swizzle_sim.testing.candidate import load
from swizzle_sim.testing.directive import Options
from swizzle_sim.testing.files import Target, targets_of
from swizzle_sim.testing.junit import Result
from swizzle_sim.testing.trials import points_of, try_points
from xcd_model.errors import LanguageError, OptionError, SwizzleSimError


def check_file(
    path: Path, over: Options | None = None, function: str = "", *, marked: bool = False
) -> Iterator[Result]:
    """Yield a result for everything in a file that is to be checked; nothing raises.

    Parameters
    ----------
    path : Path
    over : Options, optional
        Options of the caller, which win over the file's own.
    function : str
        Only this function.
    marked : bool
        Only what a ``# swizzle-check`` comment marks, and texts.
    """
    try:
        targets = [one for one in targets_of(path) if not function or one.function == function]
        if function and not targets:
            raise LanguageError(f"no function {function} to check", filename=str(path), code="file")
    except SwizzleSimError as error:
        yield Result(str(path), path.name, "error", str(error), code=error.code)
        return
    for target in targets:
        if marked and not target.marked:
            continue
        yield check_target(replace(target, marked=True) if function else target, over)


def check_target(target: Target, over: Options | None = None) -> Result:
    """Try one target where its own options, or those over them, say that it has to hold; nothing raises."""
    begin = time.perf_counter()

    def result(status: str, message: str, code: str = "") -> Result:
        seconds = time.perf_counter() - begin
        return Result(str(target.path), target.name, status, message, seconds, target.line, code)

    try:
        candidate, options = load(replace(target, options=over.over(target.options)) if over else target)
        outcome = try_points(candidate, points_of(candidate, options))
    except (LanguageError, OptionError) as error:
        # an unmarked Triton function may be any kernel; that it remaps nothing is no fault
        return result("error" if target.marked else "skipped", str(error), error.code)
    except SwizzleSimError as error:
        return result("error", str(error), error.code)
    except Exception as error:  # importing a file of the caller may raise anything
        return result("error", f"{target.path}: {type(error).__name__}: {error}", "import")
    if outcome.counterexample:
        return result("failed", outcome.message, outcome.counterexample.code)
    return result("passed", outcome.message)
