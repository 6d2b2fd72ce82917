"""Results of a check as CI services read them: JUnit XML, SARIF, GitHub's annotations; and a baseline of those known.

A baseline has the findings of a repository when it begins to check, so that only new ones fail: a line each,
``CODE PATH::NAME``, sorted, with paths from the folder of the file. Lines of a source may move, and a review shows what
a change adds or mends. Two findings of one name are two lines.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

from swizzle_sim.base.release import version
from swizzle_sim.base.text import one_line, visible
from swizzle_sim.testing.codes import RULES
from swizzle_sim.testing.run import CheckResult
from xcd_model.errors import OptionError, RunError
from xcd_model.files import read_text

# What XML 1.0 cannot hold, even escaped.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(results: Sequence[CheckResult]) -> bytes:
    """Return a JUnit XML document, UTF-8, one ``testcase`` a result.

    Source: the schema of the Jenkins xUnit plugin, whose elements and attributes alone are used.
    """
    counts = {
        "tests": len(results),
        "failures": sum(_tag(one) == "failure" for one in results),
        "errors": sum(_tag(one) == "error" for one in results),
        "skipped": sum(_tag(one) == "skipped" for one in results),
    }
    attributes = {key: str(value) for key, value in counts.items()}
    attributes |= {"name": "swizzle-sim check", "time": f"{sum(one.seconds for one in results):.3f}"}
    suites = ElementTree.Element("testsuites", attributes)
    suite = ElementTree.SubElement(suites, "testsuite", attributes)
    for one in results:
        file, seconds = _legal(one.file), f"{one.seconds:.3f}"
        named = {"classname": file, "name": _legal(one.name), "time": seconds, "file": file}
        case = ElementTree.SubElement(suite, "testcase", named | ({"line": str(one.line)} if one.line else {}))
        if one.status != "passed":
            tag = _tag(one)
            first = _legal(f"{one.rule}: {one.message}".partition("\n")[0])
            kind = {} if tag == "skipped" else {"type": one.rule}
            detail = ElementTree.SubElement(case, tag, {"message": first, **kind})
            detail.text = f"{one.rule}: {_legal(one.report)}"
    ElementTree.indent(suites)
    return ElementTree.tostring(suites, encoding="utf-8", xml_declaration=True) + b"\n"


def _tag(one: CheckResult) -> str:
    """Element of a result that did not pass; what a baseline has is as skipped."""
    return "skipped" if one.is_known else {"failed": "failure"}.get(one.status, one.status)


def _legal(text: str) -> str:
    return _FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", text)


def sarif(results: Sequence[CheckResult]) -> bytes:
    """Return a SARIF document, UTF-8: one alert for each result that did not pass.

    Files inside the working folder are given relative to it, as ``%SRCROOT%``. A fingerprint of file, name and code
    tells a service that an alert is that of the run before, though its line moved.

    Source: SARIF 2.1.0, OASIS, with errata 01; what GitHub's code scanning reads of it.
    """
    rules = [
        {
            "id": rule.code,
            "name": rule.name,
            "shortDescription": {"text": f"{rule.meaning}."},
            "defaultConfiguration": {"level": rule.level},
        }
        for rule in RULES
    ]
    run = {
        "tool": {"driver": {"name": "swizzle-sim", "version": version(), "rules": rules}},
        "columnKind": "unicodeCodePoints",
        "results": [_alert(one) for one in results if one.status != "passed"],
    }
    document = {"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0", "runs": [run]}
    return json.dumps(document, indent=2).encode() + b"\n"


def _alert(one: CheckResult) -> dict[str, Any]:
    print_of = sha256("\0".join((_from_here(one.file), one.name, one.rule)).encode(errors="surrogatepass"))
    rule = next(rule for rule in RULES if rule.code == one.rule)
    return {
        "ruleId": rule.code,
        "ruleIndex": RULES.index(rule),
        "level": rule.level,
        "message": {"text": _legal(one.report)},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": _location(one.file),
                    "region": {"startLine": max(one.line, 1)},
                },
                "logicalLocations": [{"name": _legal(one.name)}],
            }
        ],
        "partialFingerprints": {"swizzleCheck/v1": print_of.hexdigest()},
        "suppressions": [{"kind": "external", "justification": "in the baseline"}] if one.is_known else [],
        "properties": {"code": one.code},
    }


def _from_here(file: str) -> str:
    """Path relative to the working folder, with slashes, where it lies inside."""
    path = PurePath(os.path.abspath(file))
    return path.relative_to(Path.cwd()).as_posix() if path.is_relative_to(Path.cwd()) else path.as_posix()


def _location(file: str) -> dict[str, str]:
    place = _from_here(file)
    uri = quote(place.encode(errors="surrogateescape"))
    return {"uri": f"file://{uri}"} if place.startswith("/") else {"uri": uri, "uriBaseId": "%SRCROOT%"}


def github_annotations(results: Iterable[CheckResult]) -> list[str]:
    """Return GitHub's workflow commands, which show each result that did not pass at its line.

    Source: GitHub Actions, workflow commands; values are escaped as its toolkit does.
    """
    return [_annotation(one) for one in results if one.rule and not one.is_known]


def _annotation(one: CheckResult) -> str:
    level = "notice" if one.status == "skipped" else "error"
    place = (
        f"file={_property(_from_here(one.file))},line={max(one.line, 1)},title={_property(f'{one.rule} {one.name}')}"
    )
    return f"::{level} {place}::{_data(one.report)}"


def _data(text: str) -> str:
    return visible(text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A"))


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def write(option: str, path: Path, data: bytes) -> None:
    """Write a file, its folder made where it is missing."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    except OSError as error:
        raise RunError(f"{option} {path}: cannot be written ({error.strerror})") from None


_ENTRY = re.compile(r"SW\d{3} (.+)::[^:]*$")
_HEAD = "# Known findings of swizzle-sim check, as --write-baseline has them: a line that is removed fails again.\n"


def baseline_of(results: Sequence[CheckResult], path: Path) -> bytes:
    """Return the baseline of results, to be stored at a path."""
    return "".join([_HEAD, *sorted(f"{_key(one, path)}\n" for one in results if one.rule)]).encode()


def against(results: Sequence[CheckResult], path: Path, checked: Iterable[Path]) -> tuple[list[CheckResult], list[str]]:
    """Results with those marked that a baseline knows, and its entries in checked places that are found no more."""
    try:
        lines = [line for line in read_text(path).splitlines() if line and not line.startswith("#")]
    except (OSError, UnicodeDecodeError) as error:
        said = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise OptionError(f"--baseline {path}: cannot be read ({said}); --write-baseline {path} makes it") from None
    strange = next((line for line in lines if not _ENTRY.match(line)), "")
    if strange:
        raise OptionError(f"--baseline {path}: {strange[:60]!r} is no entry, such as SW101 src/remap.py::naive")
    known = Counter(lines)
    marked = []
    for one in results:
        key = _key(one, path) if one.rule else ""
        marked.append(replace(one, is_known=known[key] > 0) if key else one)
        known[key] -= 1
    places = [os.path.abspath(one) for one in checked]
    return marked, [line for line in sorted((+known).elements()) if _lies_in(line, path, places)]


def _lies_in(line: str, path: Path, places: Iterable[str]) -> bool:
    """Whether the file of an entry is one of these places, or in one."""
    file = Path(os.path.abspath(path.parent / _ENTRY.sub(r"\1", line)))
    return any(file.is_relative_to(place) for place in places)


def _key(one: CheckResult, path: Path) -> str:
    file = os.path.relpath(one.file, path.parent).replace(os.sep, "/")
    return f"{one.rule} {one_line(file)}::{one_line(one.name.rpartition('::')[2])}"
