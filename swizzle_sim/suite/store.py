"""The run folder of a suite: what was asked, and a file for each kernel that is finished."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from swizzle_sim.kernels import Kernel
from swizzle_sim.suite.result import Result
from xcd_model.errors import RunError

ABOUT = "suite.json"


def open_folder(folder: Path, about: dict[str, Any], resume: bool) -> None:
    """Make the run folder, or check that it asked for the same."""
    if not resume:
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            raise RunError(f"{folder} exists, and a run is never overwritten: name another, or --resume it") from None
        except OSError as error:
            raise RunError(f"{folder}: cannot make the run folder ({error.strerror})") from error
        store(folder / ABOUT, about)
        return
    was = _load(folder / ABOUT)
    for key, value in about.items():
        if was.get(key) != value:
            raise RunError(f"{folder}: cannot resume: its {key} is {was.get(key)}, this command's is {value}")


def stored(folder: Path, kernel: Kernel) -> Result | None:
    """Result of a kernel that the run has finished."""
    path = folder / f"{kernel.name}.json"
    if not path.exists():
        return None
    try:
        found = Result.from_dict(_load(path))
    except (KeyError, TypeError) as error:
        raise RunError(f"{path}: not the result of a kernel ({error}); delete it to score the kernel again") from error
    if dict(found.problem) != dict(kernel.problem):
        raise RunError(f"{path}: cannot resume: its sizes are {dict(found.problem)}, asked are {dict(kernel.problem)}")
    return found


def _load(path: Path) -> dict[str, Any]:
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise RunError(f"{path}: cannot be read ({error.strerror}): there is no run to go on with") from error
    except ValueError as error:
        raise RunError(f"{path}: damaged ({error})") from error
    if not isinstance(values, dict):
        raise RunError(f"{path}: damaged (no JSON object)")
    return values


def store(path: Path, values: Mapping[str, Any]) -> None:
    """Write a file so that a reader finds all of it or none."""
    part = path.with_suffix(".part")
    part.write_text(json.dumps(values, indent=1, allow_nan=False), encoding="utf-8")
    part.replace(path)
