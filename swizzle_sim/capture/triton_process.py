"""Processes that import Triton: which version is installed, their environment, and a worker that answers once.

Triton fixes on import whether it interprets or compiles, and a kernel's file runs whatever it holds, so neither
happens in the caller's process.
"""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path
from typing import Any

from swizzle_sim.release import install_hint
from xcd_model.errors import CaptureError, CompileError

TESTED = ("3.9",)  # minor versions of Triton whose interpreter the capture was tested with
ROOT = Path(__file__).resolve().parents[2]
_TAIL = 1500  # characters of stderr worth showing


def triton_version() -> str:
    """Version of the installed Triton.

    Raises
    ------
    CompileError
        If there is none; names what to install, or the platform that has no wheel.
    """
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
            raise CompileError(f"Triton's process ended with status {done.returncode}:\n{done.stderr[-_TAIL:].strip()}")
        return json.loads(answer.read_text(encoding="utf-8"))


def environment(*, interpret: bool) -> dict[str, str]:
    """Environment of a worker: this package importable, no bytecode written to users' folders, Triton's mode."""
    found = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    found["PYTHONPATH"] = os.pathsep.join([str(ROOT), *filter(None, [found.get("PYTHONPATH")])])
    found["PYTHONDONTWRITEBYTECODE"] = "1"
    return found | ({"TRITON_INTERPRET": "1"} if interpret else {})
