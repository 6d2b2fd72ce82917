"""What machine this is: GPU, XCDs, partition mode, driver and ROCm, and whether the bundle was made for it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .manifest import Refused
from .processes import run

MODEL = re.compile(r"\b(MI\d{2,3}[AXP]?|[ABHLTV]\d{2,3}[A-Z]?|GB?\d{3})\b")
_PROPERTY = re.compile(r"^\s*(\S+)\s+(\d+)\s*$", re.MULTILINE)  # a name and a number
KFD = "class/kfd/kfd/topology/nodes"
PARTITION = "class/drm/card*/device/current_{what}_partition"


def amd_topology(sys: Path = Path("/sys")) -> dict[str, Any]:
    """Topology of the AMD GPUs as the kernel driver gives it: XCDs, CUs, partition and memory modes."""
    nodes = [_PROPERTY.findall(_text(path)) for path in sorted((sys / KFD).glob("*/properties"))]
    gpus = [node for pairs in nodes if (node := {name: int(n) for name, n in pairs}).get("simd_count", 0) > 0]
    found: dict[str, Any] = {"devices": len(gpus)}
    facts: dict[str, set[Any]] = {
        "xcds": {node["num_xcc"] for node in gpus if "num_xcc" in node},
        "compute_units": {node["simd_count"] // node["simd_per_cu"] for node in gpus if node.get("simd_per_cu")},
    }
    for key, what in (("partition", "compute"), ("memory_mode", "memory")):
        facts[key] = {_text(path) for path in sys.glob(PARTITION.format(what=what))} - {""}
    for key, values in facts.items():
        if len(values) == 1:
            found[key] = next(iter(values))
        elif values:
            found[f"{key}_differ"] = sorted(map(str, values))
    return found


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def rocm_version(root: Path = Path("/opt/rocm")) -> str:
    """Version of the ROCm installation; empty where there is none."""
    return _text(root / ".info" / "version")


def nvidia_driver(log: Path) -> str:
    """Name, driver version, highest clock and power limit as nvidia-smi prints them; empty where there is none."""
    fields = "name,driver_version,clocks.max.sm,power.limit"
    said = run(["nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader"], log=log, limit_s=60)
    return said.tail.splitlines()[0] if said.state == "ok" and said.tail else ""


def check_machine(wanted: Mapping[str, Any], found: Mapping[str, Any]) -> list[str]:
    """Refuse a machine that the bundle was not made for; returns notes on what could not be determined."""
    title = wanted["title"]
    if found["arch"] != wanted["arch"]:
        raise Refused(f"this GPU is {found['name']} ({found['arch']}); the bundle is for {title} ({wanted['arch']})")
    notes = []
    models, mine = set(MODEL.findall(found["name"])), set(MODEL.findall(title))
    if models and mine and not models & mine:
        raise Refused(f"this GPU is {found['name']}; the bundle is for {title}")
    if not models:
        notes.append(f"the driver calls this GPU {found['name']!r}; taken for {title} by architecture and unit count")
    if wanted["vendor"] == "amd":
        _check_partition(wanted, found)
        if "xcds" not in found:
            notes.append("the driver does not give the number of XCDs")
    if found["compute_units"] != wanted["compute_units"]:
        raise Refused(
            f"this device has {found['compute_units']} compute units; the bundle is for {title} with "
            f"{wanted['compute_units']}: another part, or another partition mode"
        )
    return notes


def check_compiler(priced_with: str | None, triton: str) -> list[str]:
    """Warn where a bundle's prices are those of another compiler; returns notes."""
    if priced_with is None or triton.partition("+")[0] == priced_with.partition("+")[0]:
        return []
    return [
        f"warning: registers and workgroups a CU were computed with Triton {priced_with}, this node compiles with "
        f"{triton}: it may take other registers, and the predicted times are those of {priced_with}. To predict for "
        f"this node, bundle again with SWIZZLE_SIM_TRITON naming a folder of Triton {triton}"
    ]


def in_the_way(found: Mapping[str, Any], program: Path, version: str, root: Path = Path("/")) -> list[str]:
    """What of this machine may keep a profiler from counting; each is the subject of public reports."""
    reasons = []
    wheel = (found.get("versions") or {}).get("hip") or ""
    rocm = rocm_version(program.resolve().parents[1]) or str(found.get("rocm") or "")
    mine, own = (tuple(map(int, re.findall(r"\d+", text)[:2])) for text in (wheel, rocm))
    if mine and own and mine != own:
        reasons.append(f"{program} is of ROCm {rocm}, PyTorch brings ROCm {wheel}: use the profiler of one of them")
    if own and own < (6, 3):
        reasons.append(f"ROCm {rocm}: rocprofv3 takes --pmc on the command line since ROCm 6.3")
    paranoid = _text(root / "proc/sys/kernel/perf_event_paranoid")
    if paranoid.lstrip("-").isdigit() and int(paranoid) > 2 and os.geteuid():
        reasons.append(f"kernel.perf_event_paranoid is {paranoid}: above 2 only root or CAP_PERFMON may count")
    if "RmProfilingAdminOnly: 1" in _text(root / "proc/driver/nvidia/params") and os.geteuid():
        reasons.append("NVIDIA's driver lets only root count (NVreg_RestrictProfilingToAdminUsers)")
    modes = (found.get("partition", "SPX"), found.get("memory_mode", "NPS1"))
    if modes != ("SPX", "NPS1"):
        reasons.append(f"the GPU is in {' and '.join(modes)} mode")
    if others := sorted(path.name for path in (root / "sys/class/kfd/kfd/proc").glob("[0-9]*")):
        reasons.append(f"other processes use the node's GPUs (pid {', '.join(others[:6])})")
    return reasons


def _check_partition(wanted: Mapping[str, Any], found: Mapping[str, Any]) -> None:
    mode, xcds = found.get("partition", ""), found.get("xcds")
    if (mode == "CPX" or xcds == 1) and wanted["xcds"] > 1:
        raise Refused(
            f"the GPU is in CPX mode: each device is one XCD with one L2, and there is nothing to swizzle. The bundle "
            f"is for {wanted['xcds']} XCDs: have the node set to SPX (amd-smi set --compute-partition SPX, as root)"
        )
    if xcds is not None and xcds != wanted["xcds"]:
        raise Refused(
            f"a device has {xcds} XCDs here (mode {mode or 'unknown'}); the bundle is for {wanted['xcds']} "
            f"({wanted.get('partition', 'SPX')})"
        )
