"""Builds a kernel for the CPU and runs workgroups of it: what each touches, byte by byte.

The process that runs the user's code has no network, no files but its result, and limits on time and memory.
"""

from __future__ import annotations

import ctypes
import os
import re
import resource
import struct
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from subprocess import DEVNULL
from typing import Any

import numpy as np

from swizzle_sim.capture.cuda.source import HERE, DeviceSource
from swizzle_sim.capture.kernel_file import digest
from swizzle_sim.capture.memory import AddressSpace
from swizzle_sim.workload.launch import Array, Launch
from xcd_model.errors import CaptureError

RUN_S = 600.0  # of a process that runs workgroups
CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000  # of <linux/sched.h>
ARENA = 1 << 44  # address of the first tensor, as in runtime.cpp
DRAWN, GIVEN, ZEROS = range(3)  # how the items of a tensor begin
OURS = ("kernel.ii", "shim.h", "runtime.cpp", "?")  # beginnings of lines that no user wrote
WHERES = ("reads", "writes")


@dataclass(frozen=True)
class Run:
    """Accesses of some workgroups; an instruction is a pattern of lanes from its first byte on.

    ``start`` (n + 1,) and ``first_byte``, ``pattern`` (n_instructions,) as in a trace; pattern p has the lanes
    ``lanes[at[p] : at[p + 1]]``, each (thread, bytes from the first, bytes), and ``head[p]``: its tensor, whether it
    writes, and its places in the code and in the caller's.
    """

    start: np.ndarray
    first_byte: np.ndarray
    pattern: np.ndarray
    at: np.ndarray
    head: np.ndarray
    lanes: np.ndarray
    shared_bytes: int
    seconds: float  # of a processor

    def of(self, row: int) -> tuple[np.ndarray, np.ndarray]:
        """First byte and pattern of each instruction of a workgroup."""
        own = slice(int(self.start[row]), int(self.start[row + 1]))
        return self.first_byte[own], self.pattern[own]

    def row(self, row: int) -> list[tuple[int, bytes]]:
        """Instructions of a workgroup, as those of another run are compared with them."""
        content = {p: self.head[p, :2].tobytes() + self.lanes[self.at[p] : self.at[p + 1]].tobytes()
                   for p in np.unique(self.of(row)[1]).tolist()}  # fmt: skip
        return [(first, content[p]) for first, p in zip(*(part.tolist() for part in self.of(row)), strict=True)]


class Program:
    """A launch's kernel as a program of this machine, in a folder."""

    def __init__(self, launch: Launch, space: AddressSpace, folder: Path):
        self.launch, self.space, self.folder = launch, space, folder
        self.options = dict[str, Any](launch.options)
        flags = [re.sub("^-I(?!/)", f"-I{launch.path.parent}/", one) for one in self.options["flags"]]
        self.source = DeviceSource(launch.path, launch.function, os.environ.get("CXX", "g++"), flags, self.folder)
        template = f"<{self.options['template']}>" if self.options["template"] else ""
        call = f"swz_call({launch.function}{template}, given, count);"
        file = self.source.prepare(call, f"{launch.path.name} as launched")
        self.files = {one: digest(one) for one in self.source.files}
        self.program = self.folder / "program"
        self._build(file)

    def _build(self, file: Path) -> None:
        source, parts = self.source, [self.folder / "kernel.o", self.folder / "runtime.o"]
        plain = ["-O0", "-g1", "-fno-threadsafe-statics", "-fno-pic", "-fno-stack-protector", "-U_FORTIFY_SOURCE", "-c"]
        said = source.compile(file, *plain, "-fsanitize=thread", "-o", str(parts[0]))
        parts[1].write_bytes(_runtime(source.compiler))
        if said := said or source.run([source.compiler, "-no-pie", *map(str, parts), "-o", str(self.program)]):
            source.refuse(said)

    def run(self, workgroups: Sequence[int], given: Mapping[int, np.ndarray], *, is_drawn: bool = False) -> Run:
        """Run workgroups one after the other, on zeros or on drawn numbers where no items are given."""
        question = self._question(workgroups, given, is_drawn)
        with (self.folder / "result").open("wb") as result, (self.folder / "question").open("w+b") as asked:
            asked.write(question)
            asked.seek(0)
            before = _seconds()
            how: dict[str, Any] = {"env": {}, "cwd": self.folder, "preexec_fn": _confine, "timeout": RUN_S}
            try:
                done = subprocess.run(
                    [str(self.program)], stdin=asked, stdout=result, stderr=DEVNULL, check=False, **how
                )
            except subprocess.TimeoutExpired:
                raise self.error(f"stopped after {RUN_S:g} s; use a smaller problem") from None
        return self._read((self.folder / "result").read_bytes(), done.returncode, _seconds() - before)

    def _question(self, workgroups: Sequence[int], given: Mapping[int, np.ndarray], is_drawn: bool) -> bytes:
        space, launch = self.space, self.launch
        data = [_packed([int(is_drawn), int(space.base[-1] + space.size[-1]), len(space.names)])]
        for i, array in enumerate(space.arrays):
            kind = GIVEN if i in given else DRAWN if array.dtype.startswith(("fp", "bf")) else ZEROS
            data.append(_packed([int(space.base[i]), int(space.size[i]), kind]))
            if i in given:
                data.append(np.ascontiguousarray(given[i]).tobytes())
        sides = [*(*launch.grid, 1, 1)[:3], *self.options["block"], 64 if self.source.is_hip else 32]
        arguments = [self._argument(name, launch.arguments.get(name, 0)) for name in self.options["parameters"]]
        tail = [*sides, len(arguments), *(n for pair in arguments for n in pair), len(workgroups), *workgroups]
        return b"".join([*data, _packed(tail)])

    def _argument(self, name: str, value: Array | int | float) -> tuple[int, int]:
        if isinstance(value, Array):
            return 0, self.space.address(name, value)
        if isinstance(value, float):
            return 2, struct.unpack("<q", struct.pack("<d", value))[0]
        return 1, value if value < 2**63 else value - 2**64

    def _read(self, result: bytes, status: int, seconds: float) -> Run:
        if len(result) >= 16 and (head := np.frombuffer(result[:16], np.int64))[0] == 1:
            parts, at = [], 16
            while at < len(result):
                count = int(np.frombuffer(result[at : at + 8], np.int64)[0])
                parts.append(np.frombuffer(result, np.int64, count, at + 8))
                at += 8 + 8 * count
            start, first, pattern, begins, heads, lanes = parts
            shown = (heads.reshape(-1, 4), lanes.reshape(-1, 3))
            return Run(start, first, pattern, begins, *shown, int(head[1]), seconds)
        raise self._failed(result, status)

    def _failed(self, result: bytes, status: int) -> CaptureError:
        if len(result) < 56:
            return self.error(
                f"the process that ran it ended with status {status} and no answer: it waits for another workgroup, "
                "or its stack or memory are too small; use a smaller problem"
            )
        kind, pc, caller, where, *workgroup = np.frombuffer(result[:56], np.int64).tolist()
        words, at = result[56:].decode("utf-8", "replace"), f"in workgroup ({', '.join(map(str, workgroup))})"
        place = f"{self._line(pc, caller)}: " if pc else ""
        if kind == -4:
            return self.error(f"{self.launch.path.name}:{where}: {words} is reached, and not followed", "not-followed")
        if kind == -5:
            return self.error(f"no room for tensors of {where} bytes: use a smaller problem", "memory")
        if kind == -3:
            return self.error(f"{place}the next access, of address {where:#x}, is in no tensor, {at}")
        owner = max(0, int(np.searchsorted(self.space.base, where, side="right")) - 1)
        past = where - int(self.space.base[owner])
        return self.error(
            f"{place}{WHERES[-kind - 1]} byte {past} of {self.space.names[owner]} ({int(self.space.size[owner])} bytes)"
            f", {at}"
        )

    def line_of(self, found: Run, row: int, instruction: int) -> str:
        """``FILE:LINE`` of an instruction of a workgroup."""
        patterns = found.of(row)[1]
        return self._line(*found.head[patterns[instruction], 2:].tolist()) if patterns.size else self.launch.path.name

    def _line(self, *places: int) -> str:
        """``FILE:LINE`` of the first place that is the user's; the file where binutils are not installed."""
        try:
            asked = ["addr2line", "-e", str(self.program), *(hex(one - 1) for one in places if one)]
            done = subprocess.run(asked, capture_output=True, text=True, timeout=60, check=False)
        except (OSError, subprocess.TimeoutExpired):
            return self.launch.path.name
        lines = [Path(one.split(" ")[0]).name for one in done.stdout.splitlines()]
        return next((one for one in lines if not one.startswith(OURS)), self.launch.path.name)

    def error(self, words: str, code: str = "capture") -> CaptureError:
        """Error that begins with file and function."""
        return CaptureError(f"{self.launch.path.name}: {self.launch.function}: {words}", code=code)


@lru_cache(maxsize=4)
def _runtime(compiler: str) -> bytes:
    """Object file of the part that is the same for all kernels."""
    with tempfile.TemporaryDirectory(prefix="swizzle-sim-") as folder:
        source = DeviceSource(HERE / "runtime.cpp", "", compiler, (), Path(folder))
        if said := source.compile(source.path, "-O2", "-fno-pic", "-c", "-o", f"{folder}/runtime.o"):
            source.refuse(said)
        return Path(folder, "runtime.o").read_bytes()


def _seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _packed(numbers: Sequence[int]) -> bytes:
    return np.array(numbers, np.int64).tobytes()


def _confine() -> None:
    """Be a process without network and with limits; the program itself gives up all else that it does not need."""
    libc = ctypes.CDLL(None)
    if libc.unshare(CLONE_NEWNET):
        libc.unshare(CLONE_NEWUSER | CLONE_NEWNET)
    resource.setrlimit(resource.RLIMIT_CPU, (int(RUN_S), int(RUN_S)))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (8, 8))
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 36, 1 << 36))
