"""Results as JUnit XML, which every CI service reads."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

# What XML 1.0 cannot hold, even escaped.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True)
class Result:
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
    """

    file: str
    name: str
    status: str
    message: str
    seconds: float = 0.0
    line: int = 0
    code: str = ""


def junit(results: Sequence[Result]) -> bytes:
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
            told = ElementTree.SubElement(case, tag, {"message": first, **kind})
            told.text = _legal(one.message)
    ElementTree.indent(suites)
    return ElementTree.tostring(suites, encoding="utf-8", xml_declaration=True) + b"\n"


def write_junit(path: Path, results: Sequence[Result]) -> None:
    """Write `junit` to a file, its folder made where it is missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(junit(results))


def _legal(text: str) -> str:
    return _FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", text)
