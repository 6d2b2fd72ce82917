"""Asks the worker process: a folder with the request goes in, a reply and arrays come out."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from swizzle_sim.capture.triton_parts import check_installed
from xcd_model.errors import CaptureError

OnProgress = Callable[[str, int, int], None]
TAIL = 1500  # characters of a dead worker's last words
ROOT = Path(__file__).resolve().parents[2]


@contextlib.contextmanager
def ask(
    request: Mapping[str, Any],
    inputs: Mapping[str, Mapping[str, np.ndarray]] | None = None,
    on_progress: OnProgress | None = None,
) -> Iterator[tuple[dict[str, Any], Path]]:
    """Reply of the worker, and the folder with its arrays, which goes at the end of the ``with`` block.

    Parameters
    ----------
    request : mapping
        Plain data for JSON, with a ``verb``.
    inputs : mapping of str to arrays by name, optional
        Written as ``KEY.npz`` beside the request.
    on_progress : callable, optional
        ``on_progress(kernel, done, total)`` in workgroups.

    Raises
    ------
    CaptureError
        If Triton is missing or of another version, the worker refuses, or it dies.
    """
    check_installed()
    with tempfile.TemporaryDirectory(prefix="swizzle-sim-") as name:
        folder = Path(name)
        (folder / "request.json").write_text(json.dumps(request), encoding="utf-8")
        for key, arrays in (inputs or {}).items():
            np.savez(folder / f"{key}.npz", **arrays)  # type: ignore[arg-type]
        yield _run(folder, on_progress), folder


def _run(folder: Path, on_progress: OnProgress | None) -> dict[str, Any]:
    command = [sys.executable, "-m", "swizzle_sim.capture.worker", str(folder)]
    with (
        open(folder / "stderr.txt", "wb") as words,
        subprocess.Popen(
            command,
            env=_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=words,
            text=True,
            errors="replace",
        ) as worker,
    ):
        try:
            assert worker.stdout is not None
            for line in worker.stdout:
                if on_progress:
                    report = json.loads(line)
                    on_progress(report["name"], report["done"], report["total"])
        except BaseException:
            worker.kill()
            raise
    answer = folder / "reply.json"
    if not answer.exists():
        said = (folder / "stderr.txt").read_text(encoding="utf-8", errors="replace")[-TAIL:].strip()
        raise CaptureError(
            f"the process that runs Triton ended with status {worker.returncode}{': ' if said else ' and said nothing'}"
            f"{said}"
        )
    reply = json.loads(answer.read_text(encoding="utf-8"))
    if "error" in reply:
        raise CaptureError(reply["error"]["message"], code=reply["error"]["code"])
    return reply


def _environment() -> dict[str, str]:
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": os.pathsep.join(paths), "PYTHONDONTWRITEBYTECODE": "1"}
