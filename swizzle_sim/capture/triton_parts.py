"""The private parts of Triton that capture reaches into, all named here, and the versions they were tested with.

Only the worker process imports Triton: whether it interprets is fixed on import.
"""

from __future__ import annotations

import importlib
import os
import platform
from importlib import metadata
from typing import Any, NamedTuple

from swizzle_sim.release import install_hint
from xcd_model.errors import CaptureError

TESTED = ("3.9",)  # minor versions whose interpreter this code knows


class Parts(NamedTuple):
    """What capture uses of Triton: the language, and the module of its interpreter."""

    tl: Any
    interpreter: Any
    version: str


def check_installed() -> str:
    """Version of the installed Triton, found without importing it.

    Raises
    ------
    CaptureError
        If there is none or it is of a version nobody tested; says what to install.
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


def load() -> Parts:
    """Import Triton as an interpreter."""
    version = check_installed()
    if os.environ.get("TRITON_INTERPRET") != "1":
        raise CaptureError("the worker needs TRITON_INTERPRET=1")
    return Parts(
        importlib.import_module("triton.language"), importlib.import_module("triton.runtime.interpreter"), version
    )
