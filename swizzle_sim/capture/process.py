"""Requests to the worker process: a folder with the request goes in, a reply and arrays come out.

One process answers one request, or, inside ``with shared_worker():``, one after another until it dies or is spent.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import IO, Any

import numpy as np

from swizzle_sim.capture.triton_process import check_installed, environment
from xcd_model.errors import CaptureError

OnProgress = Callable[[str, int, int], None]
TAIL = 1500  # characters of a dead worker's last words


@contextlib.contextmanager
def worker_reply(
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
        Written as ``KEY.npz`` to the folder of the request.
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
        with shared_worker() as worker:
            reply = worker.answer(folder, on_progress)
        if "error" in reply:
            raise CaptureError(reply["error"]["message"], code=reply["error"]["code"])
        yield reply, folder


class TritonWorker:
    """A process that runs Triton and users' files; it starts at the first request, and anew once it has ended."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._words: IO[bytes] | None = None  # its stderr
        self._end = contextlib.ExitStack()

    def answer(self, folder: Path, on_progress: OnProgress | None) -> dict[str, Any]:
        """Reply to the request in a folder.

        Raises
        ------
        CaptureError
            If the process dies of it.
        """
        if self._process is None or self._process.poll() is not None:
            self._start()
        assert self._process and self._process.stdin and self._process.stdout and self._words
        said_before = os.fstat(self._words.fileno()).st_size
        try:
            with contextlib.suppress(BrokenPipeError):  # then stdout is empty too
                os.write(self._process.stdin.fileno(), f"{json.dumps(str(folder))}\n".encode())
            for line in self._process.stdout:
                report = json.loads(line)
                if "spent" in report:
                    break
                if on_progress:
                    on_progress(report["name"], report["done"], report["total"])
            else:
                raise CaptureError(_died(self._process.wait(), self._words, said_before))
        except BaseException:
            self.close()
            raise
        if report["spent"]:
            self.close()
        return json.loads((folder / "reply.json").read_text(encoding="utf-8"))

    def close(self) -> None:
        """End the process, whatever it does."""
        self._process = self._words = None
        self._end.close()

    def _start(self) -> None:
        self.close()
        with contextlib.ExitStack() as end:
            self._words = end.enter_context(tempfile.TemporaryFile(prefix="swizzle-sim-"))
            self._process = end.enter_context(
                subprocess.Popen(
                    [sys.executable, "-m", "swizzle_sim.capture.worker"],
                    env=environment(interpret=True),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=self._words,
                    text=True,
                    errors="replace",
                )
            )
            end.callback(self._process.kill)
            self._end = end.pop_all()


_SHARED: ContextVar[TritonWorker | None] = ContextVar("_SHARED", default=None)


@contextlib.contextmanager
def shared_worker() -> Iterator[TritonWorker]:
    """While inside, requests go to one process, which imports Triton once; it ends at the end of the outermost block.

    A user's file is run anew for each request, modules that it imports are not.
    """
    outer = _SHARED.get()
    if outer is not None:
        yield outer
        return
    worker = TritonWorker()
    token = _SHARED.set(worker)
    try:
        yield worker
    finally:
        _SHARED.reset(token)
        worker.close()


def _died(status: int, words: IO[bytes], said_before: int) -> str:
    end = os.fstat(words.fileno()).st_size
    first = max(said_before, end - 4 * TAIL)  # a character has up to 4 bytes
    said = os.pread(words.fileno(), end - first, first).decode("utf-8", "replace")[-TAIL:].strip()
    return f"the process that runs Triton ended with status {status}{': ' if said else ' and said nothing'}{said}"
