"""The version that runs and documents note, the commit that a checkout is at, and how an extra of it is installed."""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]


def version() -> str:
    """Version of the installed distribution."""
    from importlib import metadata  # noqa: PLC0415 - slow to import

    return metadata.version("swizzle-sim")


def install_hint(extra: str = "") -> str:
    """Command that installs the package with one of its extras; on no index, it comes from a checkout."""
    return (f"pip install -e '.[{extra}]'" if extra else "pip install -e .") + " in the checkout"


def triton_hint() -> str:
    """How Triton is had, whose wheels are for Linux alone: elsewhere a command that captures in a container."""
    if platform.system() == "Linux":
        return f"{install_hint('triton')}, with Python 3.11 or newer"
    return (
        f"Triton has no wheel for {platform.system()}. In a container: docker run --rm -v {ROOT}:/s -v .:/w -w /w "
        "python:3.12 sh -c 'pip install -q \"/s[triton]\" && swizzle-sim capture FILE.py -o my.trace.npz'; "
        "every command that scores or searches takes my.trace.npz here"
    )


def commit(root: Path = ROOT) -> str | None:
    """Commit of the checkout that the package is run from, such as ``295239e0c``, with ``-dirty`` after changes."""
    if not (root / ".git").exists():  # a package inside another project's checkout is not at that project's commit
        return None
    words = ["git", "-C", str(root), "describe", "--always", "--dirty", "--exclude=*", "--abbrev=9"]
    try:
        said = subprocess.run(words, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return said.stdout.strip() or None
