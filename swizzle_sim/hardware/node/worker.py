"""``confirm.py worker VERB``: the process that has PyTorch, Triton and the GPU.

``describe`` writes what GPU it is, ``time`` checks and times all candidates and stores them for `node.launcher`,
``store`` does that alone, ``count`` launches some under a profiler where the launcher cannot. Results are lines of JSON
in a file, each complete when it is written.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import importlib
import json
import platform
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, TextIO

from .launcher import COUNT_WARMUPS, COUNTED, SHOWN, STORED
from .launches import POISONS, Tensors, launcher, load_function, stored_kernel, torch
from .manifest import Refused, check_files, digest, read_manifest, read_order

WARMUPS = 3
FLUSH_BYTES = 512 << 20  # twice MI300X's Infinity Cache
BATCH = 10  # samples between two looks at the results
AHEAD_CYCLES = 1_000_000  # GPU time in which the host gets ahead, so that no launch waits for Python
STATES = {
    "cold": "after reading {mib} MiB of other data, which leaves clean lines in every cache",
    "warm": "right after a launch of the same candidate on the same tensors",
}

# Of NVML (libnvidia-ml), and of the kernel's hwmon files of amdgpu, which amd-smi reads too.
NVML = {"clock_mhz": ("nvmlDeviceGetClockInfo", 1.0), "power_w": ("nvmlDeviceGetPowerUsage", 1e-3)}
NVML |= {"energy_j": ("nvmlDeviceGetTotalEnergyConsumption", 1e-3)}
SM_CLOCK = 1
HWMON = {"clock_mhz": ("freq1_input", 1e-6), "power_w": ("power1_average", 1e-6), "energy_j": ("energy1_input", 1e-6)}


class Board:
    """Clock, power and energy of one device as its driver counts them, where a user may read them; else nothing."""

    def __init__(self, device: Any, sys: Path = Path("/sys")):
        self.nvml: Any = None
        self.handle = ctypes.c_void_p()
        self.spent_j: float | None = None
        place = (getattr(device, f"pci_{part}_id", -1) for part in ("domain", "bus", "device"))
        self.files = list(sys.glob("bus/pci/devices/{:04x}:{:02x}:{:02x}.0/hwmon/hwmon*".format(*place)))
        with contextlib.suppress(OSError, AttributeError):
            nvml = ctypes.CDLL("libnvidia-ml.so.1")
            uuid = f"GPU-{device.uuid}".encode()
            if nvml.nvmlInit_v2() == 0 and nvml.nvmlDeviceGetHandleByUUID(uuid, ctypes.byref(self.handle)) == 0:
                self.nvml = nvml

    def read(self) -> dict[str, float]:
        """Clock and power now, and the energy since the last call."""
        found = {name: value for name in NVML if (value := self._value(name)) is not None}
        if (total := found.pop("energy_j", None)) is not None:
            if self.spent_j is not None:
                found["energy_j"] = round(total - self.spent_j, 3)
            self.spent_j = total
        return found

    def _value(self, name: str) -> float | None:
        if self.nvml is not None:
            function, unit = NVML[name]
            raw = ctypes.c_ulonglong() if name == "energy_j" else ctypes.c_uint()
            which = (ctypes.c_int(SM_CLOCK),) if name == "clock_mhz" else ()
            status = getattr(self.nvml, function)(self.handle, *which, ctypes.byref(raw))
            return None if status else raw.value * unit
        file, unit = HWMON[name]
        for folder in self.files:
            with contextlib.suppress(OSError, ValueError):
                return int((folder / file).read_text()) * unit
        return None


class Clock:
    """Times launches."""

    def __init__(self, launches: Mapping[str, Callable[[], Any]], flush_bytes: int = FLUSH_BYTES, each: int = 1):
        self.launches, self.each = dict(launches), each  # launches of one call, of which the time is the mean
        self.states = {name: text.format(mib=flush_bytes >> 20) for name, text in STATES.items()}
        self.flush = torch.zeros(flush_bytes // 4, dtype=torch.int32, device="cuda")

    def cold(self) -> None:
        """Fill the caches with other data, without leaving dirty lines."""
        self.flush.sum()

    def samples(self, count: int) -> Iterator[dict[str, dict[str, list[float]]]]:
        """Yield ``{candidate: {"cold": times, "warm": times}}`` [us], batch by batch.

        In every round all candidates have their turn, each round beginning with the next one.
        """
        names = list(self.launches)
        for start in range(0, count, BATCH):
            pairs: list[tuple[str, str, Any, Any]] = []
            for turn in range(start, min(start + BATCH, count)):
                shift = turn % len(names)
                for name in names[shift:] + names[:shift]:
                    pairs += [(name, state, *self._one(name, state)) for state in STATES]
                torch.cuda.synchronize()
            found: dict[str, dict[str, list[float]]] = {name: {state: [] for state in STATES} for name in names}
            for name, state, begin, end in pairs:
                found[name][state].append(round(begin.elapsed_time(end) * 1e3 / self.each, 3))
            yield found

    def _one(self, name: str, state: str) -> tuple[Any, Any]:
        launch = self.launches[name]
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda._sleep(AHEAD_CYCLES)
        self.cold() if state == "cold" else launch()
        begin.record()
        launch()
        end.record()
        return begin, end


def main(words: list[str], folder: Path) -> int:
    """Run one verb."""
    parser = argparse.ArgumentParser(prog="worker")
    parser.add_argument("worker")
    parser.add_argument("verb", choices=("describe", "time", "store", "count"))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--candidates", nargs="*", default=())
    parser.add_argument("--store", type=Path, help="folder for code objects and inputs")
    parser.add_argument("--samples", type=int, default=0)
    parser.add_argument("--flush-bytes", type=int, default=FLUSH_BYTES)
    given = parser.parse_args(words)
    try:
        with open(given.out, "a", encoding="utf-8") as out:
            _run(given, folder, out)
    except Refused as refusal:
        sys.exit(str(refusal))
    return 0


def _run(given: argparse.Namespace, folder: Path, out: TextIO) -> None:
    def say(**line: Any) -> None:
        out.write(json.dumps(line, allow_nan=False) + "\n")
        out.flush()

    if given.verb == "describe":
        say(what="device", **describe())
        return
    manifest = read_manifest(folder)
    check_files(folder, manifest)
    work = Work(folder, manifest, given.candidates)
    if given.verb == "count":
        work.count(given.flush_bytes)
        return
    launches = work.launches if given.verb == "store" else work.check_and_time(given.samples, given.flush_bytes, say)
    if given.store:
        work.store(launches, given.store, say)
    say(what="end")


def describe() -> dict[str, Any]:
    """Device 0 and the versions of what runs on it."""
    if not torch.cuda.is_available():
        raise Refused(
            f"PyTorch {torch.__version__} sees no GPU: is it a build for ROCm or CUDA, and are you on the node?"
        )
    device = torch.cuda.get_device_properties(0)
    amd = bool(getattr(torch.version, "hip", None))
    arch = device.gcnArchName.split(":")[0] if amd else f"sm_{device.major}{device.minor}"
    return {
        "vendor": "amd" if amd else "nvidia",
        "name": device.name,
        "arch": arch,
        "compute_units": device.multi_processor_count,
        "memory_bytes": device.total_memory,
        "l2_bytes": getattr(device, "L2_cache_size", None),
        "versions": {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "triton": _triton_version(),
            "hip": getattr(torch.version, "hip", None),
            "cuda": getattr(torch.version, "cuda", None),
        },
        "system": platform.platform(),
    }


def _triton_version() -> str:
    try:
        return metadata.version("triton")
    except metadata.PackageNotFoundError:  # it comes under other names with PyTorch for ROCm
        return importlib.import_module("triton").__version__


class Work:
    """Candidates of a bundle, ready to launch."""

    def __init__(self, folder: Path, manifest: Mapping[str, Any], names: Sequence[str] = ()):
        self.folder, self.manifest = folder, manifest
        self.by_id = {one["id"]: one for one in manifest["candidates"] if not names or one["id"] in names}
        self.tensors = Tensors(manifest["launch"], folder, manifest["seed"])
        self.races = any(one.get("races") for one in manifest["candidates"])  # or the original differs from itself here

    @property
    def launches(self) -> dict[str, Any]:
        """Call that launches each candidate."""
        return {name: self.launch_of(one) for name, one in self.by_id.items()}

    def launch_of(self, candidate: Mapping[str, Any]) -> Any:
        """Call that launches a candidate."""
        function = load_function(self.folder, self.manifest, candidate["file"], self.manifest["function"])
        launch = {**self.manifest["launch"], "options": candidate.get("options", {})}
        return launcher(function, launch, self.tensors.values)

    def store(self, launches: Mapping[str, Any], folder: Path, say: Any) -> None:
        """Write code objects, inputs and digests of outputs for `node.launcher`."""
        folder.mkdir(parents=True, exist_ok=True)
        vendor = "amd" if getattr(torch.version, "hip", None) else "nvidia"
        lines: list[dict[str, Any]] = []
        for name, launch in launches.items():
            compiled, outputs = self._outputs(launch)
            try:
                kernel = stored_kernel(compiled, self.manifest["launch"], folder, name)
            except Refused as why:
                say(what="not stored", candidate=name, why=str(why))
                continue
            if self.races or self._outputs(launch)[1] != outputs:
                outputs = {}  # such as sums by atomics, in the order in which workgroups come
            lines.append({"what": "kernel", "candidate": name, **kernel, "outputs": outputs})
        lines.append({"what": "buffers", "vendor": vendor, "buffers": self.tensors.store(folder) if lines else {}})
        (folder / STORED).write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")

    def _outputs(self, launch: Any) -> tuple[Any, dict[str, str]]:
        self.tensors.prepare(POISONS[0])
        compiled = launch(SHOWN)
        found = self.tensors.outputs()
        return compiled, {key: digest(one.cpu().numpy()) for key, one in found.items()}

    def count(self, flush_bytes: int) -> None:
        """Launch candidates for a profiler, one after the other: once to warm up, then cold each time."""
        for launch in self.launches.values():
            clock = Clock({"": launch}, flush_bytes)
            for _ in range(COUNT_WARMUPS + COUNTED):
                self.tensors.prepare(POISONS[0])
                clock.cold()
                launch(SHOWN)
                torch.cuda.synchronize()

    def check_and_time(self, samples: int, flush_bytes: int, say: Any) -> dict[str, Any]:
        """Check every candidate, time those that are right, check them once more; returns the calls of those."""
        original = self.launch_of(self.manifest["candidates"][0])
        launches: dict[str, Any] = {}
        for name, one in self.by_id.items():
            say(what="begin", candidate=name)
            try:
                launch = original if one["order"] is None else self.launch_of(one)
                found = {"permutation": self.permutation(one), **self.check(original, launch, one, POISONS[0])}
            except Exception as error:  # one candidate that does not compile must not hide the others
                say(what="check", when="before", candidate=name, how="failed", why=_short(error))
                torch.cuda.synchronize()  # a bad access ends the context, and this process: nothing runs in it any more
                continue
            say(what="check", when="before", candidate=name, **found)
            if found["how"] != "differs" and found["permutation"] != "differs":
                launches[name] = launch
        if samples and launches:
            clock = Clock(launches, flush_bytes, self.manifest["launch"]["launches"])
            for launch in [*launches.values()] * WARMUPS:  # compile, raise the clocks
                launch()
            torch.cuda.synchronize()
            board = Board(torch.cuda.get_device_properties(0))
            board.read()
            for batch in clock.samples(samples):
                say(what="times", states=clock.states, unit="us", times=batch, board=board.read())
            del clock
        for name, launch in launches.items():
            found = self.check(original, launch, self.by_id[name], POISONS[1])
            say(what="check", when="after", candidate=name, **found)
        return launches

    def check(self, original: Any, launch: Any, candidate: Mapping[str, Any], poison: int) -> dict[str, Any]:
        """Outputs of a candidate compared with those of the unswizzled kernel, from the same poisoned memory."""
        self.tensors.prepare(poison)
        original()
        wanted = self.tensors.outputs()
        self.tensors.prepare(poison)
        launch()
        found = self.tensors.compare(wanted)
        inside = found["how"] == "differs" and "worst" in found  # nothing behind a tensor was written
        self.races |= inside and candidate["order"] is None  # the original comes first
        return {**found, "how": "races"} if inside and self.races else found

    def permutation(self, candidate: Mapping[str, Any]) -> str:
        """Whether this GPU computes the expected tile for every workgroup: ``equal``, ``differs``, ``as launched``."""
        if candidate["order"] is None:
            return "as launched"
        order = read_order(self.folder, self.manifest, candidate)
        probe = load_function(self.folder, self.manifest, candidate["probe"], "probe")
        found = torch.full((len(order),), -1, dtype=torch.int32, device="cuda")
        probe[(len(order),)](found, **candidate["probe_arguments"])
        torch.cuda.synchronize()
        return "equal" if found.cpu().tolist() == order.tolist() else "differs"


def _short(error: Exception) -> str:
    return re.sub(r"\s+", " ", f"{type(error).__name__}: {error}")[:600]
