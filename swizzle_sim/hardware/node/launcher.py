"""``confirm.py launcher``: launch compiled kernels as the timing process stored them, with the GPU's own library alone.

Profilers and PyTorch clash on some nodes; here is no PyTorch, no Triton and no package. What is launched are the code
objects that were checked and timed, with the same arguments, and outputs are compared by their digests.
"""

from __future__ import annotations

import argparse
import ctypes
import hashlib
import json
import mmap
import struct
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .manifest import lines_of

STORED = "launches.json"
POISON = 0xFF
COUNTED = 3  # launches a profiler is shown, after those that warm up
COUNT_WARMUPS = 1
SHOWN = 4  # launches in a row that a profiler is shown of a kernel with more: the rest are like the second
SHARED = 49152  # [bytes]: up to which a kernel has it without asking
# of CUDA's CU_FUNC_CACHE, twice CU_FUNC_ and CU_DEVICE_ATTRIBUTE
PREFER_SHARED, OWN_SHARED, MOST_SHARED, OPTIN = 1, 1, 8, 97
PACKED = {"i1": "b", "i8": "b", "i16": "h", "i32": "i", "i64": "q", "u1": "B", "u8": "B", "u16": "H", "u32": "I"}
PACKED |= {"u64": "Q", "fp16": "e", "fp32": "f", "fp64": "d"}
LIBRARIES = {"amd": "libamdhip64.so", "nvidia": "libcuda.so.1"}
CALLS = {  # the two libraries' calls take the same arguments
    "amd": {
        **{"module": "hipModuleLoadData", "function": "hipModuleGetFunction", "malloc": "hipMalloc"},
        **{"put": "hipMemcpyHtoD", "get": "hipMemcpyDtoH", "fill": "hipMemset", "launch": "hipModuleLaunchKernel"},
        **{"wait": "hipDeviceSynchronize", "init": "hipInit"},
    },
    "nvidia": {
        **{"module": "cuModuleLoadData", "function": "cuModuleGetFunction", "malloc": "cuMemAlloc_v2"},
        **{"put": "cuMemcpyHtoD_v2", "get": "cuMemcpyDtoH_v2", "fill": "cuMemsetD8_v2", "launch": "cuLaunchKernel"},
        **{"wait": "cuCtxSynchronize", "init": "cuInit"},
    },
}
Pointer = ctypes.c_void_p


class Library:
    """Device 0, by the calls that a launch needs."""

    def __init__(self, vendor: str, path: str):
        self.vendor, self.calls = vendor, CALLS[vendor]
        try:
            self.library = ctypes.CDLL(path)
        except OSError as error:
            sys.exit(f"launcher: {path}: {error}")
        self.call("init", ctypes.c_uint(0))
        if vendor == "nvidia":
            device, context = ctypes.c_int(), Pointer()
            self.checked("cuDeviceGet", ctypes.byref(device), ctypes.c_int(0))
            self.checked("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
            self.checked("cuCtxSetCurrent", context)

    def call(self, what: str, *arguments: Any) -> None:
        """Call one of the functions that both vendors have."""
        self.checked(self.calls[what], *arguments)

    def checked(self, name: str, *arguments: Any) -> None:
        """Call a function; a status other than 0 ends the process."""
        if status := getattr(self.library, name)(*arguments):
            sys.exit(f"launcher: {name} returned {status}")

    def made(self, what: str, *arguments: Any) -> Pointer:
        """Handle or address that a function gives by its first argument."""
        found = Pointer()
        self.call(what, ctypes.byref(found), *arguments)
        return found


class Buffers:
    """Memory of one launch on the GPU, filled from files."""

    def __init__(self, library: Library, folder: Path, about: Mapping[str, Any]):
        self.library, self.folder, self.about = library, folder, about
        self.at = {name: library.made("malloc", ctypes.c_size_t(one["bytes"])) for name, one in about.items()}
        for name, one in about.items():
            if one["role"] == "in":
                self._put(name)

    def _put(self, name: str) -> None:
        with open(self.folder / self.about[name]["file"], "rb") as file:
            size = self.about[name]["bytes"]
            with mmap.mmap(file.fileno(), size, access=mmap.ACCESS_COPY) as data:
                view = (ctypes.c_char * size).from_buffer(data)
                self.library.call("put", self.at[name], view, ctypes.c_size_t(size))
                del view

    def prepare(self) -> None:
        """Poison what is written, and put back what is changed."""
        for name, one in self.about.items():
            if one["role"] == "out":
                self.library.call("fill", self.at[name], POISON, ctypes.c_size_t(one["bytes"]))
            elif one["role"] == "inout":
                self._put(name)

    def digests(self) -> dict[str, str]:
        """SHA-256 of everything that may have been written."""
        found = {}
        for name, one in self.about.items():
            if one["role"] != "in":
                data = ctypes.create_string_buffer(one["bytes"])
                self.library.call("get", data, self.at[name], ctypes.c_size_t(one["bytes"]))
                found[name] = hashlib.sha256(memoryview(data)).hexdigest()
        return found


class Kernel:
    """One compiled kernel with its arguments."""

    def __init__(self, library: Library, folder: Path, about: Mapping[str, Any], buffers: Buffers):
        self.library, self.about = library, about
        module = library.made("module", (folder / about["code"]).read_bytes())
        self.function = library.made("function", module, about["symbol"].encode())
        if library.vendor == "nvidia" and about["shared"] > SHARED:
            self._prefer_shared()
        scratch = library.made("malloc", ctypes.c_size_t(about["scratch"])).value if about["scratch"] else 0
        values = [
            struct.pack("P", buffers.at[value].value + sum(first))
            if kind == "buffer"
            else struct.pack(PACKED[kind], value)
            for kind, value, *first in about["arguments"]
        ]
        # two more addresses, of scratch memory, that Triton appends: a kernel without them does not read so far
        self.values = [
            ctypes.create_string_buffer(one, 8) for one in (*values, struct.pack("P", scratch or 0), bytes(8))
        ]
        self.arguments = (Pointer * len(self.values))(*map(ctypes.addressof, self.values))

    def _prefer_shared(self) -> None:
        """Divide L1 and shared memory as Triton's own loader does: spilled registers are in what is left."""
        most, own, device = ctypes.c_int(), ctypes.c_int(), ctypes.c_int(0)
        self.library.checked("cuDeviceGetAttribute", ctypes.byref(most), OPTIN, device)
        self.library.checked("cuFuncGetAttribute", ctypes.byref(own), OWN_SHARED, self.function)
        self.library.checked("cuFuncSetCacheConfig", self.function, PREFER_SHARED)
        self.library.checked("cuFuncSetAttribute", self.function, MOST_SHARED, most.value - own.value)

    def launch(self) -> None:
        """Launch it once and wait."""
        sides = [ctypes.c_uint(side) for side in (*self.about["grid"], self.about["threads"], 1, 1)]
        shared = ctypes.c_uint(self.about["shared"])
        self.library.call("launch", self.function, *sides, shared, None, self.arguments, None)
        self.library.call("wait")


def main(words: list[str], _: Path) -> int:
    """Launch candidates one after the other: some launches to warm up, some to be counted."""
    parser = argparse.ArgumentParser(prog="launcher")
    parser.add_argument("launcher")
    parser.add_argument("--stored", type=Path, required=True, help="folder that the timing process wrote")
    parser.add_argument("--library", help="libamdhip64 or libcuda, by name or path")
    parser.add_argument("--candidates", nargs="+", required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--counted", type=int, default=COUNTED)
    parser.add_argument("--flush-bytes", type=int, default=0)
    given = parser.parse_args(words)
    *lines, stored = lines_of(given.stored / STORED)  # the buffers last
    kernels = {one["candidate"]: one for one in lines}
    library = Library(stored["vendor"], given.library or LIBRARIES[stored["vendor"]])
    buffers = Buffers(library, given.stored, stored["buffers"])
    flush = library.made("malloc", ctypes.c_size_t(given.flush_bytes)) if given.flush_bytes else None
    with open(given.out, "a", encoding="utf-8") as out:
        for name in given.candidates:
            kernel = Kernel(library, given.stored, kernels[name], buffers)
            wanted, took = kernels[name]["outputs"], list[float]()
            found: dict[str, str] = {}
            for turn in range(COUNT_WARMUPS + given.counted):
                buffers.prepare()
                if flush is not None:
                    library.call("fill", flush, turn, ctypes.c_size_t(given.flush_bytes))
                library.call("wait")
                began = time.perf_counter()
                for _turn in range(kernels[name]["launches"]):
                    kernel.launch()
                took.append(round(1e6 * (time.perf_counter() - began), 1))
                found = found or buffers.digests()
            how = "unchecked" if not wanted else "bitwise" if found == wanted else "differs"
            out.write(json.dumps({"candidate": name, "how": how, "host_us": took}) + "\n")
            out.flush()
    return 0
