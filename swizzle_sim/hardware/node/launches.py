"""One candidate on the GPU: its Triton function, loaded from the bundle, and the tensors that it is launched with."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import types
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from .launcher import PACKED, SHOWN
from .manifest import Refused, digest

torch: Any = importlib.import_module("torch")

GUARD_BYTES = 4096  # behind each tensor, where no kernel may store
POISONS = (0xFF, 0x55)  # not-a-number everywhere, and a pattern that no kernel computes
NAMES = {"fp8e4": "float8_e4m3fn", "fp8e5": "float8_e5m2", "fp16": "float16", "bf16": "bfloat16"}
NAMES |= {"fp32": "float32", "fp64": "float64"}
RELATIVE = {"fp8e4": 0.13, "fp8e5": 0.26, "bf16": 1.6e-2, "fp16": 2e-3, "fp32": 2e-5, "fp64": 1e-12}


class Tensors:
    """Every tensor argument of one launch."""

    def __init__(self, launch: Mapping[str, Any], folder: Path, seed: int, device: str = "cuda"):
        arrays = {name: one["array"] for name, one in launch["arguments"] if "array" in one}
        self.about = {name: one for name, one in arrays.items() if "same_as" not in one}
        self.folder, self.seed, self.device = folder, seed, device
        self.buffers = {name: self._buffer(one) for name, one in self.about.items()}
        self.values = {name: self._view(one.get("same_as", name), one) for name, one in arrays.items()}
        self.start: dict[str, Any] = {}
        for number, (name, one) in enumerate(self.about.items()):
            if one["role"] != "out":
                self._fill(name, one, number)
            if one["role"] == "inout":
                self.start[name] = self.buffers[name].clone()
        torch.cuda.synchronize()

    def _buffer(self, one: Mapping[str, Any]) -> Any:
        size = one["n_items"] * one["item_bytes"]
        whole = -(-size // 16) * 16 + GUARD_BYTES
        return torch.empty(whole, dtype=torch.uint8, device=self.device)

    def _view(self, name: str, one: Mapping[str, Any]) -> Any:
        first, size = one.get("offset", 0) * one["item_bytes"], one["n_items"] * one["item_bytes"]
        flat = self.buffers[name][first : first + size].view(getattr(torch, NAMES.get(one["dtype"], one["dtype"])))
        return flat.as_strided(tuple(one["shape"]), tuple(one["strides"]))

    def _fill(self, name: str, one: Mapping[str, Any], number: int) -> None:
        make = one["make"]
        if make["how"] == "file":
            data = bytearray((self.folder / make["file"]).read_bytes())
            values = torch.frombuffer(data, dtype=torch.uint8).to(self.device)
            values = values.view(getattr(torch, NAMES.get(one["dtype"], one["dtype"])))
            self.values[name].copy_(values.view(tuple(one["shape"])))
            return
        random = torch.Generator(device=self.device)
        random.manual_seed(self.seed * 1000 + number)
        target = self.values[name]
        drawn = target if one["dtype"] in ("fp16", "bf16", "fp32", "fp64") else torch.empty(
            tuple(one["shape"]), dtype=torch.float32, device=self.device
        )  # fmt: skip
        if make["how"] == "normal":
            drawn.normal_(make["mean"], make["deviation"], generator=random)
        else:
            drawn.uniform_(make["low"], make["high"], generator=random)
        if drawn is not target:
            target.copy_(drawn)

    def prepare(self, poison: int) -> None:
        """Poison what the kernel writes, guards included, and put back what it changes."""
        for name, one in self.about.items():
            if one["role"] == "out":
                self.buffers[name].fill_(poison)
            elif one["role"] == "inout":
                self.buffers[name].copy_(self.start[name])

    def store(self, folder: Path) -> dict[str, Any]:
        """Write what a launch reads to files; returns what `node.launcher` needs to know of each buffer."""
        found = {}
        for name, one in self.about.items():
            buffer = self.start.get(name, self.buffers[name])
            found[name] = {"bytes": len(buffer), "role": one["role"], "file": f"{name}.bin"}
            if one["role"] != "out":
                (folder / f"{name}.bin").write_bytes(memoryview(buffer.cpu().numpy()))
        return found

    def outputs(self) -> dict[str, Any]:
        """Copies of everything the kernel may have written, to the byte."""
        torch.cuda.synchronize()
        return {name: self.buffers[name].clone() for name, one in self.about.items() if one["role"] != "in"}

    def compare(self, wanted: Mapping[str, Any]) -> dict[str, Any]:
        """How the outputs differ from those of the unswizzled kernel."""
        torch.cuda.synchronize()
        found: dict[str, Any] = {"how": "bitwise"}
        for name, buffer in wanted.items():
            if torch.equal(self.buffers[name], buffer):
                continue
            one = self.about[name]
            size = one["n_items"] * one["item_bytes"]
            if not torch.equal(self.buffers[name][size:], buffer[size:]):
                return {"how": "differs", "tensor": name, "why": "bytes behind the tensor were written"}
            worst, allowed = self._worst(one, self.buffers[name][:size], buffer[:size]), RELATIVE.get(one["dtype"], 0.0)
            how = "tolerance" if worst <= allowed else "differs"
            if how == "differs" or found["how"] == "bitwise":
                found = {"how": how, "tensor": name, "worst": min(worst, 1e300), "allowed": allowed}
            if how == "differs":
                return found
        return found

    def _worst(self, one: Mapping[str, Any], mine: Any, wanted: Any) -> float:
        if one["dtype"] not in RELATIVE:
            return float("inf")
        kind = getattr(torch, NAMES.get(one["dtype"], one["dtype"]))
        a, b = mine.view(kind).to(torch.float64), wanted.view(kind).to(torch.float64)
        if not torch.equal(torch.isnan(a), torch.isnan(b)):
            return float("inf")
        scale = float(torch.nan_to_num(b, nan=0.0, posinf=0.0, neginf=0.0).abs().max())
        return float(torch.nan_to_num(a - b, nan=0.0).abs().max()) / (scale or 1.0)


def load_function(folder: Path, manifest: Mapping[str, Any], file: str, function: str) -> Any:
    """Triton function of one file of the bundle, the file's digest checked just before it runs."""
    path = folder / file
    if digest(path.read_bytes()) != manifest["files"].get(file):
        raise Refused(f"{path} is not what the manifest says")
    if "swizzle_sim" not in sys.modules and importlib.util.find_spec("swizzle_sim") is None:
        _stand_for_declarations()
    spec = importlib.util.spec_from_file_location(f"bundle_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    found: Any = getattr(module, function, None)
    while type(found).__name__ in ("Autotuner", "Heuristics"):
        found = found.fn  # the bundle says what was chosen
    if found is None:
        raise Refused(f"{path} has no function {function}")
    return found


def _stand_for_declarations() -> None:
    """Let a kernel's file import its declaration's nouns where swizzle-sim is not installed: they do nothing here."""
    for name in ("swizzle_sim", "swizzle_sim.capture"):
        module = types.ModuleType(name)
        vars(module)["__getattr__"] = lambda _: lambda *args, **kwargs: None
        sys.modules[name] = module


def launcher(function: Any, launch: Mapping[str, Any], tensors: Mapping[str, Any]) -> Callable[[], Any]:
    """Call that launches a function as often as its kernel is, or fewer times, and returns what Triton compiled."""
    given = {name: tensors[name] if "array" in one else one["value"] for name, one in launch["arguments"]}
    constants = {name: _constant(value) for name, value in launch["constexprs"].items()}
    grid = tuple(launch["grid"])
    options = {"num_warps": launch["num_warps"], "num_stages": launch["num_stages"], **launch.get("options", {})}

    def start(most: int = launch["launches"]) -> Any:
        for _ in range(min(most, launch["launches"])):
            compiled = function[grid](**given, **constants, **options)
        return compiled

    return start


def _constant(value: Any) -> Any:
    """Value of a constexpr; text that begins with ``tl.`` names a part of the language."""
    if not (isinstance(value, str) and value.startswith("tl.")):
        return value
    found = importlib.import_module("triton.language")
    for part in value.split(".")[1:]:
        found = getattr(found, part)
    return found


def stored_kernel(compiled: Any, launch: Mapping[str, Any], folder: Path, name: str) -> dict[str, Any]:
    """Write a compiled kernel's code object; returns how `node.launcher` launches it.

    Sources: ``CompiledKernel`` and the drivers of Triton 3.2 to 3.9: arguments that are no constants, in order, then
    addresses of scratch memory; threads of a workgroup are warps of ``warp_size``.
    """
    ending = next((one for one in ("hsaco", "cubin") if one in getattr(compiled, "asm", ())), None)
    if ending is None:
        raise Refused("Triton gave no code object for it")
    about, arguments = compiled.metadata, dict(launch["arguments"])
    odd = ("launch_cooperative_grid", "launch_cluster", "launch_pdl", "profile_scratch_size")
    if needs := [one for one in odd if getattr(about, one, 0)] + ["clusters"] * (getattr(about, "num_ctas", 1) > 1):
        raise Refused(f"it needs {', '.join(needs)}")
    constants, packed = compiled.src.constants, []
    for argument, kind in compiled.src.signature.items():
        if kind == "constexpr" or argument in constants:
            continue
        given = arguments.get(argument, {})
        if kind.startswith("*") and "array" in given:
            array = given["array"]
            first = array.get("offset", 0) * array.get("item_bytes", 1)
            packed.append(["buffer", array.get("same_as", argument), *([first] if first else [])])
        elif kind in PACKED and "value" in given:
            packed.append([kind, given["value"]])
        else:
            raise Refused(f"argument {argument} is of type {kind}")
    (folder / f"{name}.{ending}").write_bytes(compiled.asm[ending])
    grid = [*launch["grid"], 1, 1][:3]
    warp = getattr(about, "warp_size", 0) or (64 if ending == "hsaco" else 32)
    return {
        **{"code": f"{name}.{ending}", "symbol": about.name, "grid": grid, "threads": about.num_warps * warp},
        **{"shared": about.shared, "arguments": packed, "launches": min(launch["launches"], SHOWN)},
        "scratch": getattr(about, "global_scratch_size", 0) * grid[0] * grid[1] * grid[2],
    }
