"""One kernel through the commands that a user types, each a process of its own with a limit of time and of memory."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from .sources import HERE, KERNELS, SOURCES

FOLDERS = re.compile(r"/(?:[^/\s:]+/)+(?=[\w.-]+\.py)")  # of files that a message names
STEPS = ("capture", "optimize", "rewrite")
SWIZZLE = """q = num_pids // num_xcds
r = num_pids % num_xcds
x = pid % num_xcds
pid = x * q + min(x, r) + pid // num_xcds
"""  # each XCD a run of neighbours, whatever the grid


@dataclass(frozen=True)
class Limits:
    """What a command may take."""

    seconds: float = 600.0
    gib: float = 12.0  # memory that each process may ask for
    search_minutes: float = 1.0  # of ``optimize --max-minutes``


class Trial:
    """The commands of one kernel."""

    def __init__(self, name: str, root: Path, limits: Limits):
        module, _, variable = name.partition(":")
        self.limits, self.at = limits, KERNELS[name].get("at", "program")
        self.declaration = f"{HERE / 'declarations' / module}.py:{variable}"
        self.out = root / "out" / name.replace(":", "-")
        self.out.mkdir(parents=True, exist_ok=True)
        self.trace = str(self.out / "captured.trace.npz")
        paths = [str(one.place(root) / one.folder) for one in SOURCES.values() if not one.variable]
        self.environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
        for source in SOURCES.values():
            self.environment.update(source.environment(root))

    def capture(self) -> dict[str, Any]:
        """Workgroups of the trace."""
        found = self._command("capture", self.declaration, "-o", self.trace)
        return {"workgroups": found["workgroups"]}

    def optimize(self) -> dict[str, Any]:
        """Best candidate, its hit rate and predicted gain beside the launch order's, and how many were tried."""
        minutes = f"{self.limits.search_minutes:g}"
        words = ["--max-minutes", minutes, "--no-uncertainty", "--no-compile", "-o", str(self.out / "run")]
        _clear(self.out / "run")
        found = self._command("optimize", self.trace, *words)
        best = found["best"][0]
        hits = [round(100 * one["score"]["l2_hit_rate"], 1) for one in (found["baseline"], best)]
        return {
            "best": best["name"],
            "hits": hits,
            "speedup": round(best["score"]["speedup"], 3),
            "tried": found["tried"],
        }

    def rewrite(self) -> dict[str, Any]:
        """Whose ids were remapped, and at how many small sizes both kernels were equal; none where sizes are fixed."""
        swizzle = self.out / "swizzle.txt"
        swizzle.write_text(SWIZZLE, encoding="utf-8")
        words = ["--swizzle", str(swizzle), "--at", self.at, "-o", str(self.out / "new.py")]
        found = self._command("rewrite", self.declaration, *words)
        cases = found["check"]["cases"]
        whole = [case for case in cases if case["whole"]]
        moved = max(case["moved"] for case in whole or cases)
        return {"remapped": found["remapped"], "sizes": len(whole), "moved": moved}

    def _command(self, *words: str) -> dict[str, Any]:
        """Document that a command prints."""
        command = [sys.executable, "-m", "swizzle_sim", *words, "--json"]
        limited = ["sh", "-c", 'ulimit -d "$0" && exec "$@"', str(int(self.limits.gib * 2**20)), *command]
        with (
            (self.out / f"{words[0]}.log").open("w") as log,
            subprocess.Popen(
                limited,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=self.environment,
                cwd=self.out,
                start_new_session=True,
            ) as running,
        ):
            try:
                printed, _ = running.communicate(timeout=self.limits.seconds)
            except BaseException as error:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(running.pid, signal.SIGKILL)
                if isinstance(error, subprocess.TimeoutExpired):
                    raise Refused(f"not done in {self.limits.seconds:g} s") from None
                raise
        with contextlib.suppress(json.JSONDecodeError):
            found = json.loads(printed)
            if running.returncode == 0:
                return found
            said = found["error"]["message"].splitlines()
            raise Refused(" ".join(dict.fromkeys((said[0], said[-1]))))
        said = (self.out / f"{words[0]}.log").read_text(encoding="utf-8", errors="replace").splitlines()
        raise Refused(next((line for line in reversed(said) if line.strip()), f"ended with {running.returncode}"))


class Refused(Exception):
    """A command that gives no result."""


def try_kernel(
    name: str,
    root: Path,
    limits: Limits,
    steps: tuple[str, ...],
    known: Mapping[str, Any],
    store: Callable[[dict], Any],
) -> None:
    """Run those steps of a kernel that have no result yet."""
    source = SOURCES[KERNELS[name]["source"]]
    row = dict(known) if known.get("version") == source.version else {}
    row |= {"source": source.name, "version": source.version}
    trial = Trial(name, root, limits)
    for step in steps:
        if step in row:
            continue
        began = time.monotonic()
        try:
            if step == "optimize" and not Path(trial.trace).is_file():
                raise Refused("there is no trace")
            found = getattr(trial, step)()
        except Refused as error:
            found = {"refused": FOLDERS.sub("", str(error))}
        row[step] = {**found, "seconds": round(time.monotonic() - began), "on": date.today().isoformat()}
        store(row)


def _clear(folder: Path) -> None:
    """Remove an earlier run, which ``optimize`` does not write over."""
    for path in sorted(folder.rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    if folder.is_dir():
        folder.rmdir()
