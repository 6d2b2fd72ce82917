"""One child process in a group of its own, with a time limit: a GPU that hangs takes the child, never the flow."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

GRACE_S = 5.0  # between SIGTERM and SIGKILL
TAIL = 4000  # last characters of the output


@dataclass(frozen=True)
class Outcome:
    """How a child ended."""

    state: str  # ok, failed, hung (it outlived its limit and was killed with its group) or missing (no such program)
    code: int | None  # exit status; negative for a signal
    seconds: float
    tail: str  # end of what it printed


def run(command: Sequence[str], *, log: Path, limit_s: float, cwd: Path | None = None) -> Outcome:
    """Run a program, without a shell, and wait for it."""
    began = time.monotonic()
    with open(log, "wb") as out:
        try:
            streams: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": out, "stderr": subprocess.STDOUT}
            child = subprocess.Popen(list(command), cwd=cwd, start_new_session=True, **streams)
        except OSError as error:
            return Outcome("missing", None, 0.0, f"{command[0]}: {error.strerror}")
        try:
            code = child.wait(timeout=limit_s)
            state = "ok" if code == 0 else "failed"
        except subprocess.TimeoutExpired:
            _end(child)
            code, state = child.returncode, "hung"
        except BaseException:
            _end(child)
            raise
    return Outcome(state, code, time.monotonic() - began, log.read_bytes()[-TAIL:].decode("utf-8", "replace").strip())


def _end(child: subprocess.Popen) -> None:
    """Stop a child and everything it started."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, number)
        try:
            child.wait(timeout=GRACE_S)
        except subprocess.TimeoutExpired:
            continue
        try:
            os.killpg(child.pid, 0)
        except (ProcessLookupError, PermissionError):  # all are gone
            return


def version_of(program: str, log: Path, lines: int) -> str:
    """The first lines of ``program --version`` that hold a version number; empty if it prints none."""
    said = run([program, "--version"], log=log, limit_s=60)
    found = [line.strip() for line in said.tail.splitlines() if re.search(r"\d+\.\d+", line)]
    return "; ".join(found[:lines]) if said.state == "ok" else ""
