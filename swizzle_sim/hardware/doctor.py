"""``swizzle-sim doctor``: what works on this machine, and with ``--report`` a block of Markdown for an issue.

The report has no names of users or hosts, no paths, no keys and no values of environment variables: what is found is
named by version, count and size, and the finished text goes through `scrubbed` all the same.
"""

from __future__ import annotations

import getpass
import os
import platform
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from swizzle_sim.base.disk_cache import cache_home
from swizzle_sim.base.release import commit, version
from swizzle_sim.hardware.node.counting import find_program, profiler_for
from swizzle_sim.hardware.node.machine import amd_topology, in_the_way, rocm_version

Check = tuple[str, str, str]  # name, state (ok, off, missing), what was found or the command that fixes it
LIBRARIES = (
    *("numpy", "numba", "llvmlite", "pandas", "matplotlib", "typer", "rich"),
    *("optuna", "scipy", "diskcache"),
)
EXTRAS = {
    "triton": ("triton",),
    "llm": ("dspy", "openai"),
    "cluster": ("distributed",),
    "docs": ("mkdocs", "mkdocs-material", "mkdocstrings"),
    "test": ("pytest", "hypothesis"),
    "node": ("torch",),
}
SWITCHES = (  # change results or speed; reported as set or not, never with their value
    *("NUMBA_DISABLE_JIT", "NUMBA_NUM_THREADS", "NUMBA_CACHE_DIR", "TRITON_INTERPRET", "TRITON_CACHE_DIR"),
    *("XDG_CACHE_HOME", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"),
)


def checks(sys: Path = Path("/sys"), rocm: Path = Path("/opt/rocm")) -> Iterator[Check]:
    """Yield (name, state, message) for everything that bundles and confirmations need."""
    topology = amd_topology(sys)
    nvidia = _nvidia_gpus()
    amd = topology["devices"] > 0
    if not amd and not nvidia:
        yield "GPU", "off", "none here: a laptop. swizzle-sim bundle RUN makes a folder for the node that has one"
    if amd:
        yield from _amd(topology, rocm)
    if nvidia:
        yield "GPU", "ok", nvidia
        yield from _profiler("nvidia", "put the CUDA toolkit's bin folder on the PATH (usually /usr/local/cuda/bin)")
    if amd or nvidia:
        yield package("torch", "pip install torch  (on AMD: the build for your ROCm, see pytorch.org)")
    found = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    yield "C++ compiler", "ok" if found else "off", found or "for the checks of .hip files only: apt install g++"
    where = cache_home().parent
    good = os.access(next((path for path in (where, *where.parents) if path.exists()), Path("/")), os.W_OK)
    yield "cache folder", "ok" if good else "missing", f"{where}{': export XDG_CACHE_HOME=FOLDER' * (not good)}"


def _amd(topology: dict, rocm: Path) -> Iterator[Check]:
    mode, xcds = topology.get("partition", "unknown"), topology.get("xcds")
    units = topology.get("compute_units", "unknown")
    yield "GPU", "ok", f"{topology['devices']} AMD device(s), {xcds or 'unknown'} XCDs, {units} CUs each"
    fix = "amd-smi set --compute-partition SPX  (as root, with nothing running)"
    if mode == "CPX" or xcds == 1:
        yield "partition mode", "off", f"{mode}: one XCD and one L2 a device, nothing to swizzle; {fix}"
    elif "partition_differ" in topology:
        yield "partition mode", "off", f"devices differ: {', '.join(topology['partition_differ'])}; {fix}"
    else:
        yield "partition mode", "ok", f"{mode}, memory {topology.get('memory_mode', 'unknown')}"
    version = rocm_version(rocm)
    yield "ROCm", "ok" if version else "missing", version or "no /opt/rocm: install ROCm, or load your site's module"
    yield from _profiler("amd", "apt install rocprofiler-sdk  (or dnf), then export PATH=$PATH:/opt/rocm/bin")
    hipcc = shutil.which("hipcc") or shutil.which("/opt/rocm/bin/hipcc")
    yield "hipcc", "ok" if hipcc else "off", hipcc or "needed for .hip files only: apt install hipcc"


def _profiler(vendor: str, fix: str) -> Iterator[Check]:
    profiler = profiler_for(vendor)
    program = find_program(profiler, None)
    if program is None:
        yield profiler.name, "missing", fix
        return
    with tempfile.TemporaryDirectory() as folder:
        version = profiler.version(program, Path(folder) / "log")
    yield profiler.name, "ok" if version else "missing", version or f"{program} does not start; {fix}"
    for why in in_the_way({}, Path(program), version):
        yield "counters", "missing", why


def _nvidia_gpus() -> str:
    words = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    try:
        said = subprocess.run(words, capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):  # none, or it does not answer
        return ""
    return "; ".join(said.stdout.strip().splitlines())


def package(name: str, fix: str) -> Check:
    """Whether a distribution is installed."""
    try:
        return name, "ok", metadata.version(name)
    except metadata.PackageNotFoundError:
        return name, "missing", fix


def report_markdown() -> str:
    """Markdown table of versions, system, extras, GPU and caches, to be pasted into an issue."""
    lines = ["<!-- swizzle-sim doctor --report -->", "| what | found |", "| --- | --- |"]
    lines += [f"| {name} | {found.replace('|', '/')} |" for name, found in _rows()]
    return scrubbed("\n".join(lines) + "\n")


def scrubbed(text: str) -> str:
    """Text without home folders and the user's name."""
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
    yield "system", f"{platform.platform()}, {os.cpu_count()} threads"
    yield "libraries", ", ".join(_versions(LIBRARIES))
    for extra, packages in EXTRAS.items():
        yield f"for {extra}", ", ".join(_versions(packages))
    yield from _machine()
    yield "set in the environment", ", ".join(name for name in SWITCHES if name in os.environ) or "none of those listed"


def _versions(names: tuple[str, ...]) -> Iterator[str]:
    for name, state, found in (package(name, "") for name in names):
        yield f"{name} {found}" if state == "ok" else f"no {name}"


def _machine() -> Iterator[tuple[str, str]]:
    """GPU, driver, profilers, compilers and the cache, by state and version; of a path, only that it was found."""
    for name, state, message in checks():
        if name == "torch":  # said above
            continue
        said = state if state != "ok" or message.startswith(("/", "\\")) or ":\\" in message else message
        yield name, "found" if said == "ok" else {"off": "none", "missing": "missing"}.get(said, said)
