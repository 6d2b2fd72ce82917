"""Processes that import Triton: it fixes on import whether it interprets or compiles, and a kernel's file runs there.

`worker_reply` sends a request to the capture worker, which answers one, or, inside ``with shared_worker():``, one after
another until it dies or is spent. `run_worker` runs any other worker for one request: JSON in, JSON out.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from importlib import metadata
from pathlib import Path
from typing import IO, Any

import numpy as np

from swizzle_sim.release import install_hint
from xcd_model.errors import CaptureError, CompileError

OnProgress = Callable[[str, int, int], None]
TESTED = ("3.9",)  # minor versions of Triton whose interpreter the capture was tested with
TAIL = 1500  # characters shown of a dead worker's stderr
COMPILER = "SWIZZLE_SIM_TRITON"  # variable with a folder whose Triton compiles, such as the GPU node's version
ROOT = Path(__file__).resolve().parents[2]


def triton_version() -> str:
    """Version of the Triton that compiles: the installed one, or the one in the folder that `COMPILER` names.

    Raises
    ------
    CompileError
        If there is none; names what to install, or the platform that has no wheel.
    """
    if folder := os.environ.get(COMPILER):
        for one in metadata.distributions(name="triton", path=[folder]):
            return one.version
        raise CompileError(f"{COMPILER}={folder}: no Triton is installed there: pip install --target {folder} triton")
    try:
        if importlib.util.find_spec("triton") is not None:
            return metadata.version("triton")
    except (metadata.PackageNotFoundError, ValueError):
        pass
    if platform.system() != "Linux":
        raise CompileError(f"Triton has no wheel for {platform.system()}: compile and rewrite kernels on Linux")
    raise CompileError(f"Triton is not installed; it comes with: {install_hint('triton')}, with Python 3.11 or newer")


def check_installed() -> str:
    """Version of the installed Triton, found without importing it.

    Raises
    ------
    CaptureError
        If there is none or it is of an untested version; names what to install.
    """
    try:
        version = metadata.version("triton")
    except metadata.PackageNotFoundError:
        where = "" if platform.system() == "Linux" else f", and has no wheel for {platform.system()}"
        raise CaptureError(
            f"capture needs Triton, which is not installed{where}: {install_hint('triton')}, on Linux with Python 3.11 "
            "or newer (macOS and Windows have no wheel; capture on Linux and carry the trace file over)",
            code="no-triton",
        ) from None
    if ".".join(version.split(".")[:2]) not in TESTED:
        raise CaptureError(
            f"Triton {version} is installed; capture was tested with {', '.join(TESTED)} only and reaches into its "
            f"interpreter: pip install 'triton=={TESTED[-1]}.*'",
            code="triton-version",
        )
    return version


def environment(*, interpret: bool) -> dict[str, str]:
    """Environment of a worker: this package importable, no bytecode written to users' folders, Triton's mode."""
    found = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    other = None if interpret else found.get(COMPILER)  # captures are tested with the installed one
    found["PYTHONPATH"] = os.pathsep.join([str(ROOT), *filter(None, [other, found.get("PYTHONPATH")])])
    found["PYTHONDONTWRITEBYTECODE"] = "1"
    return found | ({"TRITON_INTERPRET": "1"} if interpret else {})


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


def run_worker(module: str, request: dict[str, Any], *, interpret: bool, timeout_s: float) -> dict[str, Any]:
    """Answer of ``module.main(request_file, reply_file)``, run in another process.

    Parameters
    ----------
    module : str
        Dotted name of the worker.
    request : dict
        Plain data for JSON.
    interpret : bool
        Whether Triton interprets kernels there or compiles them.
    timeout_s : float [s]

    Returns
    -------
    reply : dict
        With key ``error`` where the worker found one of its own.

    Raises
    ------
    CompileError
        If Triton is missing, the worker dies, or it takes longer than ``timeout_s``.
    """
    triton_version()
    with tempfile.TemporaryDirectory(prefix="swizzle-sim-") as folder:
        question, answer = Path(folder, "request.json"), Path(folder, "reply.json")
        question.write_text(json.dumps(request), encoding="utf-8")
        command = [sys.executable, "-m", module, str(question), str(answer)]
        try:
            done = subprocess.run(
                command,
                env={**environment(interpret=interpret), "TRITON_CACHE_DIR": str(Path(folder, "triton"))},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=timeout_s,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise CompileError(f"Triton was stopped after {timeout_s:g} s without an answer") from None
        if done.returncode or not answer.exists():
            raise CompileError(f"Triton's process ended with status {done.returncode}:\n{done.stderr[-TAIL:].strip()}")
        return json.loads(answer.read_text(encoding="utf-8"))
