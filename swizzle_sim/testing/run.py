"""Checks targets one after the other, files side by side; and what the results of all mean to a caller."""

from __future__ import annotations

import ast
import contextlib
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from swizzle_sim.language.verdict import REFUTED
from swizzle_sim.testing.called import Died
from swizzle_sim.testing.candidate import load
from swizzle_sim.testing.codes import rule_of
from swizzle_sim.testing.directive import Options
from swizzle_sim.testing.files import Target, targets_of
from swizzle_sim.testing.grids_to_try import Point, as_grid, each_size, kind_of
from swizzle_sim.testing.settle import settle
from swizzle_sim.testing.trials import points_of, try_points
from swizzle_sim.triton_source.imports import Imports, parsed
from swizzle_sim.triton_source.loops import LOOP
from xcd_model.errors import LanguageError, OptionError, RunError, SwizzleSimError

_NO_VALUE = re.compile(r"(?:^|: )([\w, ]+?) (?:has|have) no value")  # what stopped a reading
_NOT = "NOT a bijection"
_WORTH_PROCESSES = 24  # files; for fewer, starting processes takes longer than it saves


@dataclass(frozen=True)
class CheckResult:
    """One thing checked."""

    file: str  # as it was typed
    name: str  # what was checked in it
    status: str  # ``error`` where it could not be read
    message: str
    seconds: float = 0.0
    line: int = 0  # where it begins in the file, 0 where it has no file
    code: str = ""  # of the counter-example or the error
    # comment to write above a function that is skipped, so that it is checked; empty where none is known
    advice: str = ""
    # what was supposed about names that nothing gives a value, as a comment would say it: ``GRID_MN=num_pids``
    guessed: str = ""
    verdict: str = ""  # empty where nothing was tried
    rule: str = ""  # code of the finding, as of `RULES`; empty where it passed
    is_known: bool = False  # whether a baseline has it

    def __post_init__(self) -> None:
        if self.status != "passed":
            object.__setattr__(self, "rule", rule_of(self.status, self.code, self.message).code)

    @property
    def report(self) -> str:
        """Message for a document, with the comment to add."""
        return f"{self.message}\n  add: {self.advice}" if self.advice else self.message


def check_file(
    path: Path, over: Options | None = None, function: str = "", *, call: bool = False
) -> Iterator[CheckResult]:
    """Yield a result for everything in a file that is to be checked; nothing raises."""
    try:
        targets = [one for one in targets_of(path, function) if not function or one.function == function]
        if function and not targets:
            raise LanguageError(f"no function {function} to check", filename=str(path), code="file")
    except SwizzleSimError as error:
        yield CheckResult(str(path), path.name, "error", str(error), code=error.code)
        return
    for target in targets:
        result = check_target(replace(target, marked=target.marked or bool(function), is_called=call), over)
        # of a function that is plainly no remap nothing is lost
        if result.status != "skipped" or target.likely or result.code in (LOOP, "unsigned", "unsure"):
            yield result


def check_target(target: Target, over: Options | None = None) -> CheckResult:
    """Try one target where its own options, or those over them, say that it has to hold; nothing raises."""
    begin = time.perf_counter()

    def result(status: str, message: str, code: str = "", **more: Any) -> CheckResult:
        seconds = time.perf_counter() - begin
        return CheckResult(str(target.path), target.name, status, message, seconds, target.line, code, **more)

    try:
        candidate, options = load(replace(target, options=over.over(target.options)) if over else target)
        outcome = settle(candidate, try_points(candidate, points_of(candidate, options)), options)
    except Died as error:
        return result("failed", str(error), error.code, verdict=REFUTED)
    except (LanguageError, OptionError) as error:
        if target.marked:
            hint = "; --call calls it in place of reading it" if target.kind == "function" else ""
            return result("error", f"{error}{hint}", error.code)
        return result("skipped", str(error), error.code, advice=_comment_to_add(target, error))
    except SwizzleSimError as error:
        return result("error", str(error), error.code)
    guessed = options.guessed
    said = f"{outcome.message}\n  guessed: {guessed}" if guessed else outcome.message
    if outcome.counterexample and outcome.point:
        said = said.replace(_NOT, f"{_NOT}{_through(target, outcome.point)}", 1)
        return result("failed", said, outcome.counterexample.code, guessed=guessed, verdict=outcome.status)
    return result("passed", said, guessed=guessed, verdict=outcome.status)


def check_files(
    files: Sequence[tuple[Path, str]], over: Options | None = None, *, jobs: int = 0, call: bool = False
) -> Iterator[list[CheckResult]]:
    """Yield the results of each file, or of the one function that is named with it, in the order given."""
    processes = jobs or (-1 if len(files) >= _WORTH_PROCESSES else 1)
    if processes == 1:
        yield from (_all_of(file, over, function, call) for file, function in files)
        return
    import joblib  # not for a file or two
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    parallel = joblib.Parallel(n_jobs=processes, return_as="generator")
    try:
        yield from parallel(joblib.delayed(_all_of)(file, over, function, call) for file, function in files)
    except TerminatedWorkerError:
        raise RunError("a process that checked files ended: it may lack memory") from None


def _all_of(file: Path, over: Options | None, function: str, call: bool) -> list[CheckResult]:
    return list(check_file(file, over, function, call=call))


def _through(target: Target, point: Point) -> str:
    """Helper that is wrong by itself at the launch at which a function fails that calls it; empty where none is."""
    source = parsed(target.path) if target.kind == "read" and not target.until else None
    if source is None or target.function not in source.every_function:
        return ""
    calls = [node for node in ast.walk(source.every_function[target.function]) if isinstance(node, ast.Call)]
    for name in dict.fromkeys(ast.unparse(call.func) for call in calls):
        home = Imports.of(source).resolve(name)
        with contextlib.suppress(SwizzleSimError):
            for helper in targets_of(Path(home[0].filename), home[1]) if home else ():
                if helper.likely and helper.function != target.function and _fails_at(helper, point):
                    place = "" if helper.path.name == target.path.name else f" of {helper.path.name}"
                    return f" through {helper.function}, line {helper.line}{place},"
    return ""


def _fails_at(helper: Target, point: Point) -> bool:
    candidate, options = load(helper)
    kind = kind_of(candidate.form)
    grid = point.grid if kind == "tiles" and point.grid.tiles else as_grid(point.grid.num_pids, kind)
    sizes = each_size(replace(options, sizes={**options.sizes, **options.own}))[0]
    return candidate.counterexample(grid, point.num_xcds, sizes) is not None


def exit_status(results: Sequence[CheckResult], *, allow_skips: bool = False, allow_none: bool = False) -> int:
    """Exit status of a check: what was not checked is no pass, unless a baseline has it."""
    found = {"passed" if one.is_known else one.status for one in results} or {"passed" if allow_none else ""}
    if "failed" in found:
        return 1
    if "error" in found:
        return 2
    return 0 if allow_skips or found == {"passed"} else 2


def _comment_to_add(target: Target, error: SwizzleSimError) -> str:
    """Line to add above a function, or around statements of it, after what stopped its reading."""
    begin = "//" if target.path.suffix != ".py" else "#"
    message = str(error)
    missing = _NO_VALUE.search(message)
    if missing:
        names = [name.strip() for name in missing.group(1).split(",")]
        return f"{begin} swizzle: " + " ".join(f"{name}=..." for name in names)
    if "grids=" in message:
        return f"{begin} swizzle: grids=..., the launch that the constants of the file are for"
    if "answer=, and" in message:
        return f"{begin} swizzle: answer=... tiles=..., the names that hold the tile and one count for each"
    if "tiles=" in message:
        return f"{begin} swizzle: tiles=..., one count for each coordinate"
    if "say which names" in message:
        return f"{begin} swizzle: answer=..., the names that hold the tile"
    return f"{begin} swizzle: begin pid=..., and {begin} swizzle: end, around the lines that compute the tile"
