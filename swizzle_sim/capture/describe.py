"""Declarations in a user's file, read in the worker process: the file runs there and nowhere else."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from swizzle_sim.capture.declare import KernelDeclaration
from swizzle_sim.capture.kernel_file import line_of, load_file
from xcd_model.errors import CaptureError, SwizzleSimError, UnknownName

MAX_GRIDS = 24  # other grids for the check over a lattice


def declared(path: Path, name: str | None) -> KernelDeclaration:
    """The declaration in a file.

    Raises
    ------
    CaptureError
        If there is none, or more than one and no name; names them.
    """
    module = load_file(path)
    found = {variable: value for variable, value in vars(module).items() if isinstance(value, KernelDeclaration)}
    if name is not None and not found:
        raise CaptureError(
            f"{path.name}: declares no Kernel(...), so none that is called {name}; start with: "
            f"swizzle-sim init-kernel {path.name}:{name}",
            code="declaration",
        )
    if name is not None:
        if name not in found:
            raise UnknownName(f"Kernel in {path.name}", name, found)
        return found[name]
    if len(found) != 1:
        what = f"{len(found)} of them: {', '.join(found)}; say which: {path.name}:NAME" if found else "none"
        raise CaptureError(
            f"{path.name}: holds one Kernel(...) declaration, not {what}"
            + ("" if found else f"; start with: swizzle-sim init-kernel {path.name}:FUNCTION"),
            code="declaration",
        )
    return next(iter(found.values()))


def describe(request: Mapping[str, Any]) -> dict[str, Any]:
    """Launch and facts of the kernel at the requested sizes, and the grids it would have at others."""
    kernel = declared(Path(request["path"]), request["name"])
    sizes = kernel.sizes_at(request["sizes"])
    launch = kernel.at(**sizes)
    facts, grid = kernel.facts(sizes, launch), kernel.grid_at(sizes, launch)
    spread = {**sizes, kernel.programs: grid.num_pids} if kernel.programs else None
    return {
        "launch": launch.as_dict(),
        "launch_by_tile": kernel.at(**spread).as_dict() if spread else None,
        "sizes_by_tile": spread,
        "facts": facts,
        "grid": list(grid.launch),
        "grids": _other_grids(kernel, sizes, set(launch.constexprs)),
        "source": launch.path.read_text(encoding="utf-8"),
    }


def _other_grids(kernel: KernelDeclaration, sizes: Mapping[str, int], fixed: set[str]) -> list[dict[str, Any]]:
    """Grids at other sizes: halves, thirds, ragged ones; sizes that are constexprs stay."""
    free = [name for name in sizes if name not in fixed]
    tries = [
        {name: max(1, sizes[name] // part - cut) for name in free} for part in (1, 2, 3, 5, 8, 16) for cut in (0, 1)
    ]
    tries += [{name: max(1, sizes[name] // part)} for name in free for part in (2, 3, 7, 1 << 30)]
    found: dict[str, dict[str, Any]] = {}
    for change in tries:
        try:
            at = kernel.sizes_at({**sizes, **change})
            grid = kernel.grid_at(at, kernel.at(**at))
        except SwizzleSimError:
            continue
        tiles = list(grid.tiles) if grid.tiles else None
        found.setdefault(str(grid), {"grid": list(grid.launch), "tiles": tiles, "sizes": dict(at)})
    return list(found.values())[:MAX_GRIDS]


def save_inputs(request: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Write the arrays that the declaration makes to ``made.npz``."""
    path = Path(request["path"])
    kernel = declared(path, request["name"])
    _save(folder, path, kernel, lambda: kernel.at(**kernel.sizes_at(request["sizes"])).make_inputs(request["seed"]))
    return {}


def save_reference(request: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Write what the declaration's reference gives for ``given.npz`` to ``made.npz``."""
    path = Path(request["path"])
    kernel = declared(path, request["name"])
    if kernel.reference is None:
        raise CaptureError(f"{path.name}: {kernel.name} declares no reference", code="declaration")
    reference = kernel.reference
    with np.load(folder / "given.npz") as arrays:
        _save(folder, path, kernel, lambda: reference(dict(arrays)))
    return {}


def _save(folder: Path, path: Path, kernel: KernelDeclaration, make: Any) -> None:
    try:
        arrays = {name: np.asarray(value) for name, value in make().items()}
    except MemoryError:
        raise
    except Exception as error:
        raise CaptureError(
            f"{line_of(error, path)}: {kernel.name}: {type(error).__name__}: {error}", code="declaration"
        ) from error
    np.savez(folder / "made.npz", **arrays)  # type: ignore[arg-type]
