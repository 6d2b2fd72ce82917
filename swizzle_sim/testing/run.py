"""Checks targets one after the other, and writes the results as JUnit XML, which every CI service reads."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from xml.etree import ElementTree

from swizzle_sim.testing.candidate import load
from swizzle_sim.testing.directive import Options
from swizzle_sim.testing.files import Target, targets_of
from swizzle_sim.testing.trials import points_of, try_points
from xcd_model.errors import LanguageError, OptionError, SwizzleSimError

# What XML 1.0 cannot hold, even escaped.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True)
class CheckResult:
    """One thing checked.

    Parameters
    ----------
    file : str
        As it was typed.
    name : str
        What was checked in it.
    status : {"passed", "failed", "error", "skipped"}
        ``error`` where it could not be read.
    message : str
    seconds : float
    line : int
        Where it begins in the file, 0 where it has no file.
    code : str
        Of the counter-example or the error.
    advice : str
        Comment to write above a function that is skipped, so that it is checked; empty where none is known.
    guessed : str
        What was supposed about names that nothing gives a value, as a comment would say it: ``GRID_MN=num_pids``.
    """

    file: str
    name: str
    status: str
    message: str
    seconds: float = 0.0
    line: int = 0
    code: str = ""
    advice: str = ""
    guessed: str = ""


def check_file(
    path: Path, over: Options | None = None, function: str = "", *, marked: bool = False
) -> Iterator[CheckResult]:
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
        yield CheckResult(str(path), path.name, "error", str(error), code=error.code)
        return
    for target in targets:
        if marked and not target.marked:
            continue
        yield check_target(replace(target, marked=True) if function else target, over)


def check_target(target: Target, over: Options | None = None) -> CheckResult:
    """Try one target where its own options, or those over them, say that it has to hold; nothing raises."""
    begin = time.perf_counter()

    def result(status: str, message: str, code: str = "") -> CheckResult:
        seconds = time.perf_counter() - begin
        return CheckResult(str(target.path), target.name, status, message, seconds, target.line, code)

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


def junit(results: Sequence[CheckResult]) -> bytes:
    """Return a JUnit XML document, UTF-8, one ``testcase`` a result.

    Source: the schema of the Jenkins xUnit plugin, whose elements and attributes alone are used.
    """
    counts = {
        "tests": len(results),
        "failures": sum(one.status == "failed" for one in results),
        "errors": sum(one.status == "error" for one in results),
        "skipped": sum(one.status == "skipped" for one in results),
    }
    attributes = {key: str(value) for key, value in counts.items()}
    attributes |= {"name": "swizzle-sim check", "time": f"{sum(one.seconds for one in results):.3f}"}
    suites = ElementTree.Element("testsuites", attributes)
    suite = ElementTree.SubElement(suites, "testsuite", attributes)
    for one in results:
        case = ElementTree.SubElement(
            suite,
            "testcase",
            {
                "classname": _legal(one.file),
                "name": _legal(one.name),
                "time": f"{one.seconds:.3f}",
                "file": _legal(one.file),
            }
            | ({"line": str(one.line)} if one.line else {}),
        )
        if one.status != "passed":
            tag = {"failed": "failure", "error": "error", "skipped": "skipped"}[one.status]
            first = _legal(one.message.partition("\n")[0])
            kind = {} if tag == "skipped" else {"type": one.code or tag}
            detail = ElementTree.SubElement(case, tag, {"message": first, **kind})
            detail.text = _legal(one.message)
    ElementTree.indent(suites)
    return ElementTree.tostring(suites, encoding="utf-8", xml_declaration=True) + b"\n"


def write_junit(path: Path, results: Sequence[CheckResult]) -> None:
    """Write `junit` to a file, its folder made where it is missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(junit(results))


def _legal(text: str) -> str:
    return _FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", text)
