"""Processes that import Triton: it fixes on import whether it interprets or compiles, and a kernel's file runs there.

`worker_reply` sends a request to the capture worker, which answers one, or, inside ``with shared_worker():``, one after
another until it dies or is spent. `run_worker` has ``module.answer(request)`` answered in a process of its own.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from importlib import metadata
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import IO, Any

import numpy as np

from swizzle_sim.base.release import triton_hint
from xcd_model.errors import CaptureError, CompileError

OnProgress = Callable[[str, int, int], None]
TESTED = ("3.8", "3.9")  # minor versions of Triton whose interpreter the capture was tested with
WORKER = "swizzle_sim.capture.worker"
COMPILER = "SWIZZLE_SIM_TRITON"  # variable with a folder whose Triton compiles, such as the GPU node's version
TAIL = 1500  # characters shown of what a process said before it died
PR_SET_PDEATHSIG = 1  # of <linux/prctl.h>
ROOT = Path(__file__).resolve().parents[2]
_PATH = os.environ.get("PYTHONPATH", "")  # as this process was started with


def triton_version() -> str:
    """Version of the Triton that compiles: the installed one, or the one in the folder that `COMPILER` names."""
    if folder := os.environ.get(COMPILER):
        for one in metadata.distributions(name="triton", path=[folder]):
            return one.version
        raise CompileError(f"{COMPILER}={folder}: no Triton is installed there: pip install --target {folder} triton")
    try:
        if importlib.util.find_spec("triton") is not None:
            return metadata.version("triton")
    except (metadata.PackageNotFoundError, ValueError):
        pass
    raise CompileError(f"Triton is not installed: {triton_hint()}")


def check_installed() -> str:
    """Version of the installed Triton, found without importing it."""
    try:
        version = metadata.version("triton")
    except metadata.PackageNotFoundError:
        raise CaptureError(f"capture needs Triton, which is not installed: {triton_hint()}", code="no-triton") from None
    if _minor(version) < min(map(_minor, TESTED)):
        raise CaptureError(
            f"Triton {version} is installed; capture reaches into its interpreter, and was tested with "
            f"{' and '.join(TESTED)}: pip install 'triton=={TESTED[-1]}.*'",
            code="triton-version",
        )
    return version


def untested() -> str:
    """Ending of an error that may be due to a Triton newer than capture was tested with; empty with another."""
    version = metadata.version("triton")
    if _minor(version) <= max(map(_minor, TESTED)):
        return ""
    return (
        f" (Triton {version} is newer than {TESTED[-1]}, with which capture was tested: if that is the cause, "
        f"pip install 'triton=={TESTED[-1]}.*')"
    )


def _minor(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in version.split(".")[:2])


def environment(*, interpret: bool, path: str | None = None) -> dict[str, str]:
    """Environment of a worker: this package importable, no bytecode written to users' folders, Triton's mode.

    ``path`` takes the place of the present ``PYTHONPATH``.
    """
    found = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    other = None if interpret else found.get(COMPILER)  # captures are tested with the installed one
    users = found.get("PYTHONPATH", "") if path is None else path
    folders = [str(ROOT), *filter(None, [other, *users.split(os.pathsep)])]
    found["PYTHONPATH"] = os.pathsep.join(os.path.abspath(one) for one in folders)
    found["PYTHONDONTWRITEBYTECODE"] = "1"
    return found | ({"TRITON_INTERPRET": "1"} if interpret else {})


@contextlib.contextmanager
def worker_reply(
    request: Mapping[str, Any],
    inputs: Mapping[str, Mapping[str, np.ndarray]] | None = None,
    on_progress: OnProgress | None = None,
) -> Iterator[tuple[dict[str, Any], Path]]:
    """Reply of the worker, and the folder with its arrays, which goes at the end of the ``with`` block."""
    check_installed()
    with tempfile.TemporaryDirectory(prefix="swizzle-sim-") as name:
        folder = Path(name)
        (folder / "request.json").write_text(json.dumps(request), encoding="utf-8")
        for key, arrays in (inputs or {}).items():
            np.savez(folder / f"{key}.npz", **arrays)  # type: ignore[arg-type]
        with shared_worker() as worker:
            reply = worker.answer(folder, on_progress)
        if "error" in reply:
            code = reply["error"]["code"]
            raise CaptureError(reply["error"]["message"] + (untested() if code == "capture" else ""), code=code)
        yield reply, folder


class TritonWorker:
    """A process that runs Triton and users' files; it starts at the first request, and anew once it has ended."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def answer(self, folder: Path, on_progress: OnProgress | None) -> dict[str, Any]:
        """Reply to the request in a folder."""
        if self._process is None or self._process.poll() is not None:
            self.close()
            self._said = tempfile.TemporaryFile(prefix="swizzle-sim-")  # noqa: SIM115  (goes with the process)
            self._process = subprocess.Popen(
                **_command(WORKER, interpret=True), stdin=PIPE, stdout=PIPE, stderr=self._said, text=True
            )
        worker, since_bytes = self._process, _size(self._said)
        assert worker.stdin and worker.stdout
        try:
            with contextlib.suppress(BrokenPipeError):  # then stdout is empty too
                print(json.dumps(str(folder)), file=worker.stdin, flush=True)
            for line in worker.stdout:
                report = json.loads(line)
                if "spent" in report:
                    break
                if on_progress:
                    on_progress(report["name"], report["done"], report["total"])
            else:
                worker.kill()
                said = _last_words(self._said, since_bytes)
                words = f": {said}" if said else " and said nothing"
                raise CaptureError(f"the process that runs Triton ended with status {worker.wait()}{words}{untested()}")
        except BaseException:
            self.close()
            raise
        if report["spent"]:
            self.close()
        return json.loads((folder / "reply.json").read_text(encoding="utf-8"))

    def close(self) -> None:
        """End the process, whatever it does."""
        if self._process is not None:
            self._process.kill()
            with self._said, contextlib.suppress(BrokenPipeError):
                self._process.__exit__(None, None, None)
            self._process = None


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


def _command(module: str, *arguments: str, interpret: bool, **more: str) -> dict[str, Any]:
    """Process of ``module.main()``, or of ``module.answer`` of a request in a file, with a file for the reply.

    Our own folders of ``PYTHONPATH`` are added after its imports.
    """
    users = environment(interpret=interpret)["PYTHONPATH"]
    begin = f"from {__name__} import begin; begin()"
    return {
        "args": [sys.executable, "-P", "-c", begin, str(os.getpid()), users, module, *arguments],
        "env": {**environment(interpret=interpret, path=_PATH), **more},
    }


def begin() -> None:
    """Be the worker that `_command` is about, in the folder and with the modules of the user."""
    parent, users, name, *arguments = sys.argv[1:]
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # else nobody would end it or hear what it says
    if os.getppid() != int(parent):
        sys.exit(1)
    status = 1
    try:
        importlib.import_module("triton")  # which a folder of the user's may hide
        module = importlib.import_module(name)
        own = [os.getcwd(), *users.split(os.pathsep)]
        sys.path[:] = [*own, *(path for path in sys.path if path not in own)]
        sys.argv, os.environ["PYTHONPATH"] = [name, *arguments], users
        if arguments:
            question, answer = map(Path, arguments)
            reply = module.answer(json.loads(question.read_text(encoding="utf-8")))
            answer.write_text(json.dumps(reply), encoding="utf-8")
        else:
            module.main()
        status = 0
    except BaseException:  # as Python itself would say it
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)  # at an orderly end Triton lists what it leaks, in place of the last words


def _size(said: IO[bytes]) -> int:
    return os.fstat(said.fileno()).st_size


def _last_words(said: IO[bytes], since_bytes: int = 0) -> str:
    end = _size(said)
    first = max(since_bytes, end - 4 * TAIL)  # a character has up to 4 bytes
    return os.pread(said.fileno(), end - first, first).decode("utf-8", "replace")[-TAIL:].strip()


def run_worker(module: str, request: dict[str, Any], *, interpret: bool, timeout_s: float) -> dict[str, Any]:
    """Answer of ``module.answer(request)``, in another process."""
    triton_version()
    with tempfile.TemporaryDirectory(prefix="swizzle-sim-") as folder, tempfile.TemporaryFile() as said:
        question, answer = Path(folder, "request.json"), Path(folder, "reply.json")
        question.write_text(json.dumps(request), encoding="utf-8")
        cache = str(Path(folder, "triton"))
        command = _command(module, str(question), str(answer), interpret=interpret, TRITON_CACHE_DIR=cache)
        try:
            done = subprocess.run(**command, timeout=timeout_s, stdin=DEVNULL, stdout=DEVNULL, stderr=said, check=False)
        except subprocess.TimeoutExpired:
            raise CompileError(f"Triton was stopped after {timeout_s:g} s without an answer") from None
        if done.returncode or not answer.exists():
            raise CompileError(f"Triton's process ended with status {done.returncode}:\n{_last_words(said)}")
        return json.loads(answer.read_text(encoding="utf-8"))
