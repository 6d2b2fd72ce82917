"""The Triton functions of a bundle, loaded from its files and launched."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import types
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from .sealed import Refused, digest


def load_function(folder: Path, manifest: Mapping[str, Any], file: str, function: str) -> Any:
    """Triton function of one file of the bundle, the file's digest checked just before it runs.

    Raises
    ------
    Refused
        If the file is not what the manifest says, or has no such function.
    """
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


def launcher(function: Any, launch: Mapping[str, Any], tensors: Mapping[str, Any]) -> Callable[[], None]:
    """Call that launches a function once.

    Parameters
    ----------
    function : triton.JITFunction
    launch : mapping
        Of the manifest.
    tensors : mapping of str to torch.Tensor
    """
    given = {name: tensors[name] if "array" in one else one["value"] for name, one in launch["arguments"]}
    constants = {name: _constant(value) for name, value in launch["constexprs"].items()}
    grid = tuple(launch["grid"])
    options = {"num_warps": launch["num_warps"], "num_stages": launch["num_stages"]}

    def start() -> None:
        for _ in range(launch["launches"]):
            function[grid](**given, **constants, **options)

    return start


def _constant(value: Any) -> Any:
    """Value of a constexpr; text that begins with ``tl.`` names a part of the language."""
    if not (isinstance(value, str) and value.startswith("tl.")):
        return value
    found = importlib.import_module("triton.language")
    for part in value.split(".")[1:]:
        found = getattr(found, part)
    return found
