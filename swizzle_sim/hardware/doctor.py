"""What of the way to hardware works on this machine: GPU, partition mode, profilers, PyTorch, compilers."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from swizzle_sim.hardware.node.machine import amd_topology, rocm_version
from swizzle_sim.hardware.node.profilers import find_program, profiler_for

Check = tuple[str, str, str]  # name, state (ok, off, missing), what was found or what mends it
PROFILING = Path("/proc/driver/nvidia/params")


def checks(sys: Path = Path("/sys"), rocm: Path = Path("/opt/rocm")) -> Iterator[Check]:
    """Yield (name, state, message) for everything that bundles and confirmations need.

    Parameters
    ----------
    sys, rocm : Path
        Where sysfs is mounted and ROCm installed.
    """
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
        yield from _permission()
    if amd or nvidia:
        yield _package("torch", "pip install torch  (on AMD: the build for your ROCm, see pytorch.org)")
    yield _compiler()
    yield _cache()


def _amd(topology: dict, rocm: Path) -> Iterator[Check]:
    mode, xcds = topology.get("partition", "unknown"), topology.get("xcds")
    units = topology.get("compute_units", "unknown")
    yield "GPU", "ok", f"{topology['devices']} AMD device(s), {xcds or 'unknown'} XCDs, {units} CUs each"
    mend = "amd-smi set --compute-partition SPX  (as root, with nothing running)"
    if mode == "CPX" or xcds == 1:
        yield "partition mode", "off", f"{mode}: one XCD and one L2 a device, nothing to swizzle; {mend}"
    elif "partition_differ" in topology:
        yield "partition mode", "off", f"devices differ: {', '.join(topology['partition_differ'])}; {mend}"
    else:
        yield "partition mode", "ok", f"{mode}, memory {topology.get('memory_mode', 'unknown')}"
    version = rocm_version(rocm)
    yield "ROCm", "ok" if version else "missing", version or "no /opt/rocm: install ROCm, or load your site's module"
    yield from _profiler("amd", "apt install rocprofiler-sdk  (or dnf), then export PATH=$PATH:/opt/rocm/bin")
    hipcc = shutil.which("hipcc") or shutil.which("/opt/rocm/bin/hipcc")
    yield "hipcc", "ok" if hipcc else "off", hipcc or "needed for .hip files only: apt install hipcc"


def _profiler(vendor: str, mend: str) -> Iterator[Check]:
    profiler = profiler_for(vendor)
    program = find_program(profiler, None)
    if program is None:
        yield profiler.name, "missing", mend
        return
    with tempfile.TemporaryDirectory() as folder:
        version = profiler.version(program, Path(folder) / "log")
    yield profiler.name, "ok" if version else "missing", version or f"{program} does not start; {mend}"


def _permission() -> Iterator[Check]:
    """Whether the NVIDIA driver lets this user read counters."""
    try:
        text = PROFILING.read_text(encoding="utf-8")
    except OSError:
        return
    if "RmProfilingAdminOnly: 1" in text and os.geteuid() != 0:
        mend = "run as root, or: options nvidia NVreg_RestrictProfilingToAdminUsers=0 in /etc/modprobe.d, then reboot"
        yield "counters", "missing", f"the driver lets only root read them; {mend}"
    else:
        yield "counters", "ok", "this user may read them"


def _nvidia_gpus() -> str:
    program = shutil.which("nvidia-smi")
    if program is None:
        return ""
    words = [program, "--query-gpu=name,driver_version", "--format=csv,noheader"]
    try:
        said = subprocess.run(words, capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return "; ".join(said.stdout.strip().splitlines()) if said.returncode == 0 else ""


def _package(name: str, mend: str) -> Check:
    try:
        return name, "ok", metadata.version(name)
    except metadata.PackageNotFoundError:
        return name, "missing", mend


def _compiler() -> Check:
    found = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    return "C++ compiler", "ok" if found else "off", found or "for the checks of .hip files only: apt install g++"


def _cache() -> Check:
    where = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    place = next((path for path in (where, *where.parents) if path.exists()), Path("/"))
    good = os.access(place, os.W_OK)
    return "cache folder", "ok" if good else "missing", str(where) if good else f"{where}: export XDG_CACHE_HOME=FOLDER"
