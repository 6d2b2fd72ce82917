"""``swizzle-sim doctor --report``: what an issue needs to know of a machine, as Markdown, and nothing about its user.

No names of users or hosts, no paths, no keys and no values of environment variables: what is found is named by version,
count and size, and the finished text goes through `scrubbed` all the same.
"""

from __future__ import annotations

import getpass
import os
import platform
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path

from swizzle_sim.release import commit, version

LIBRARIES = ("numpy", "numba", "llvmlite", "pandas", "matplotlib", "typer", "rich", "libcst", "optuna")
EXTRAS = {
    "triton": ("triton",),
    "llm": ("dspy", "openai"),
    "cluster": ("distributed",),
    "docs": ("mkdocs", "mkdocs-material", "mkdocstrings"),
    "test": ("pytest", "hypothesis"),
    "node": ("torch",),
}
SWITCHES = (  # that change results or speed; whether they are set, never to what
    *("NUMBA_DISABLE_JIT", "NUMBA_NUM_THREADS", "NUMBA_CACHE_DIR", "TRITON_INTERPRET", "TRITON_CACHE_DIR"),
    *("XDG_CACHE_HOME", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"),
)
PLUGGED = ("swizzle_sim.kernels", "swizzle_sim.proposers", "swizzle_sim.commands", "swizzle_sim.checks")
UNKNOWN = "unknown"


def report_markdown() -> str:
    """Markdown table of versions, system, extras, GPU and caches, to be pasted into an issue."""
    lines = ["<!-- swizzle-sim doctor --report -->", "| what | found |", "| --- | --- |"]
    lines += [f"| {name} | {found.replace('|', '/')} |" for name, found in _rows()]
    return scrubbed("\n".join(lines) + "\n")


def scrubbed(text: str) -> str:
    """Text without home folders and the user's name.

    Parameters
    ----------
    text : str
    """
    text = text.replace(str(Path.home()), "~") if len(str(Path.home())) > 1 else text
    text = re.sub(r"(?:/home|/Users|[A-Za-z]:\\Users)[/\\][^/\\\s|]+", "~", text)
    try:
        user = getpass.getuser()
    except (OSError, KeyError, ImportError):  # a container may run as a number without a name
        return text
    plain = len(user) < 3 or user == "root"
    return text if plain else re.sub(rf"\b{re.escape(user)}\b", "USER", text)


def _rows() -> Iterator[tuple[str, str]]:
    at = commit()
    yield "swizzle-sim", version() + (f" (commit {at})" if at else "")
    yield "Python", f"{platform.python_version()} ({platform.python_implementation()})"
    for name, found in (("system", _system), ("CPU", _cpu), ("memory", _memory)):
        yield name, _asked(found)
    yield "libraries", ", ".join(_versions(LIBRARIES))
    for extra, packages in EXTRAS.items():
        yield f"for {extra}", ", ".join(_versions(packages))
    yield "plug-ins", _asked(_plug_ins)
    yield from _machine()
    yield "caches", _asked(_caches)
    yield "set in the environment", ", ".join(name for name in SWITCHES if name in os.environ) or "none of those asked"


def _asked(found: Callable[[], str]) -> str:
    """What a probe says; a machine that does not answer is no reason to have no report."""
    try:
        return found() or UNKNOWN
    except (OSError, ValueError, subprocess.SubprocessError):
        return UNKNOWN


def _versions(names: tuple[str, ...]) -> Iterator[str]:
    for name in names:
        try:
            yield f"{name} {metadata.version(name)}"
        except metadata.PackageNotFoundError:
            yield f"no {name}"


def _system() -> str:
    if sys.platform == "linux":
        try:
            name = platform.freedesktop_os_release().get("PRETTY_NAME", "Linux")
        except OSError:
            name = "Linux"
        return f"{name}, Linux {platform.release()}, {platform.machine()}, {' '.join(platform.libc_ver())}".rstrip(", ")
    return f"{platform.system()} {platform.release()}, {platform.machine()}"


def _cpu() -> str:
    usable = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count()
    return f"{_cpu_name()}, {os.cpu_count()} threads, {usable} usable"


def _cpu_name() -> str:
    if sys.platform == "darwin":
        words = ["sysctl", "-n", "machdep.cpu.brand_string"]
        return subprocess.run(words, capture_output=True, text=True, timeout=10, check=False).stdout.strip()
    info = Path("/proc/cpuinfo")
    found = re.search(r"^model name\s*:\s*(.+)$", info.read_text(), re.M) if info.exists() else None
    return found[1] if found else platform.processor() or platform.machine()


def _memory() -> str:
    return f"{os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') / 2**30:.1f} GiB"


def _plug_ins() -> str:
    """Distributions besides this one that add kernels, proposers, commands or checks."""
    found = {
        f"{entry.dist.name} {entry.dist.version}"
        for group in PLUGGED
        for entry in metadata.entry_points(group=group)
        if entry.dist is not None and entry.dist.name != "swizzle-sim"
    }
    return ", ".join(sorted(found)) or "none"


def _machine() -> Iterator[tuple[str, str]]:
    """GPU, driver, profilers and compilers, by state and version; where a path was found, only that it was."""
    from swizzle_sim.hardware.doctor import checks  # noqa: PLC0415  it starts programs

    for name, state, message in checks():
        if name in ("cache folder", "torch"):  # said elsewhere
            continue
        said = state if state != "ok" or message.startswith(("/", "\\")) or ":\\" in message else message
        yield name, "found" if said == "ok" else {"off": "none", "missing": "missing"}.get(said, said)


def _caches() -> str:
    place = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    ours = place / "swizzle-sim"
    writable = os.access(next(path for path in (ours, *ours.parents) if path.exists()), os.W_OK)
    parts = []
    for folder in sorted(path for path in ours.glob("*") if path.is_dir()):
        sizes = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
        parts.append(f"{folder.name.split('-')[0]} {len(sizes)} files {sum(sizes) / 1e6:.1f} MB")
    return f"{'writable' if writable else 'not writable'}; {', '.join(parts) or 'empty'}"
