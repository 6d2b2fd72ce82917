"""The process that imports Triton and runs users' files: `swizzle_sim.capture.process.TritonWorker`.

Reads folders from stdin, as JSON lines. Of each it reads ``request.json``, writes ``reply.json`` and arrays there,
reports progress as JSON lines on stdout, and at last whether it is spent: no longer as a new process would be. What
users' files and kernels print goes to stderr, and they read nothing from stdin.
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from swizzle_sim.capture.check import check, sample
from swizzle_sim.capture.claims import TileClaims
from swizzle_sim.capture.declare import KernelDeclaration
from swizzle_sim.capture.follow import follow
from swizzle_sim.capture.interpret import interpret_all
from swizzle_sim.capture.kernel_file import forget_files, line_of, load_file, own_files
from swizzle_sim.capture.language import Language
from swizzle_sim.capture.loaded_kernel import LoadedKernel
from swizzle_sim.capture.memory import AddressSpace, real_items
from swizzle_sim.capture.recording import recorded_declaration
from swizzle_sim.capture.trace_file import ARRAYS, TOLD
from swizzle_sim.workload.launch import Launch
from xcd_model.errors import CaptureError, SwizzleSimError, UnknownName

EVERY_S = 0.2  # between two reports
MAX_GRIDS = 24  # other grids for the check over a lattice


def main() -> None:
    """Answer the requests in the folders that stdin names."""
    folders, say = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    sys.setrecursionlimit(100_000)  # values worked out later form long chains
    for line in folders:
        forget_files()
        spent = _answer(Path(json.loads(line)), say)
        print(json.dumps({"spent": spent}), file=say, flush=True)


def _answer(folder: Path, say: Any) -> bool:
    """Answer the request in a folder; whether the process is spent."""
    request = json.loads((folder / "request.json").read_text(encoding="utf-8"))
    verb = request["verb"]
    spent = verb == "capture"  # which patches Triton's language
    try:
        if spent:
            reply = _capture(request, folder, say)
        else:
            reply = VERBS[verb](request) if verb in VERBS else _save_made(request, folder)
    except SwizzleSimError as error:
        reply = {"error": {"code": error.code, "message": str(error)}}
    except MemoryError:
        reply = {"error": {"code": "memory", "message": "out of memory: use a smaller problem"}}
        spent = True
    except Exception as error:
        traceback.print_exc()
        reply = {"error": {"code": "capture", "message": f"{type(error).__name__}: {error}"}}
        spent = True
    (folder / "reply.json").write_text(json.dumps(reply), encoding="utf-8")
    return spent


def _capture(request: dict[str, Any], folder: Path, say: Any) -> dict[str, Any]:
    language = Language()
    items = []
    for i, described in enumerate(request["launches"]):
        launch = Launch.from_dict(described)
        try:
            items.append(_capture_one(language, launch, request, folder, i, _reporter(say, launch.function)))
        except SwizzleSimError as error:
            items.append({"error": {"code": error.code, "message": str(error)}})
    return {"items": items, "triton": language.version, "dependencies": own_files()}


def _capture_one(language: Language, launch: Launch, request, folder: Path, i: int, on_progress) -> dict[str, Any]:
    space = AddressSpace.place(launch.storage)
    kernel = LoadedKernel(language, launch, space)
    path = folder / f"inputs-{i}.npz"
    given = dict(np.load(path)) if path.exists() else {}
    data = real_items(space, given, everything=request["full"], seed=request["seed"])
    checked = []
    if request["full"]:
        trace, flops = interpret_all(kernel, request["line_bytes"], data, on_progress)
        n_paths = None
    else:
        claims = TileClaims(int(np.prod(kernel.grid, dtype=np.int64)))
        trace, paths, flops = follow(kernel, request["line_bytes"], data, claims, on_progress)
        n_paths = len(paths)
        checked = check(kernel, trace, sample(kernel.grid, paths, request["seed"]), data, claims)
    np.savez(folder / f"trace-{i}.npz", **{name: getattr(trace, name) for name in (*ARRAYS, *TOLD)})
    return {"paths": n_paths, "checked": checked, "flops": flops}


def _reporter(say: Any, name: str) -> Callable[[int, int], None]:
    last = [0.0]

    def report(done: int, total: int) -> None:
        if time.monotonic() - last[0] > EVERY_S:
            last[0] = time.monotonic()
            print(json.dumps({"name": name, "done": done, "total": total}), file=say, flush=True)

    return report


def declared(path: Path, name: str | None) -> KernelDeclaration:
    """The declaration in a file."""
    if path.suffix == ".json":
        return recorded_declaration(path, name)
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
    is_config_given = kernel.config is not None
    kernel.config = request.get("config", kernel.config)
    sizes = kernel.sizes_at(request["sizes"])
    launch = kernel.at(**sizes)
    facts, grid = kernel.facts(sizes, launch), kernel.grid_at(sizes, launch)
    spread = {**sizes, kernel.programs: grid.num_pids} if kernel.programs else None
    return {
        "launch": launch.as_dict(),
        "launch_by_tile": kernel.at(**spread).as_dict() if spread else None,
        "sizes_by_tile": spread,
        "is_config_given": is_config_given,
        "configs": kernel.configs_at(sizes) if launch.config else [],
        "facts": facts,
        "grid": list(grid.launch),
        "grids": _other_grids(kernel, sizes, set(launch.constexprs), tiled=grid.tiles is not None),
        "source": launch.path.read_text(encoding="utf-8"),
    }


def configurations(request: Mapping[str, Any]) -> dict[str, Any]:
    """Launch of each of the autotuner's configurations at the requested sizes, or why there is none."""
    kernel = declared(Path(request["path"]), request["name"])
    sizes = kernel.sizes_at(request["sizes"])
    found: list[dict[str, Any]] = []
    for place in kernel.configs_at(sizes):
        kernel.config = place
        try:
            found.append({"place": place, "launch": kernel.at(**sizes).as_dict()})
        except SwizzleSimError as error:
            found.append({"place": place, "error": str(error)})
    return {"name": kernel.name, "problem": dict(sizes), "configurations": found}


def _other_grids(
    kernel: KernelDeclaration, sizes: Mapping[str, int], fixed: set[str], *, tiled: bool
) -> list[dict[str, Any]]:
    """Grids at other sizes: halves, thirds, ragged ones; sizes that are constexprs stay.

    Of a ``tiled`` kernel none without tile axes: those that the source hides do not fit a grid that rounds down.
    """
    free = [name for name in sizes if name not in fixed]
    tries = [
        {name: max(1, sizes[name] // part - cut) for name in free} for part in (1, 2, 3, 5, 8, 16) for cut in (0, 1)
    ]
    tries += [{name: max(1, sizes[name] // part)} for name in free for part in (2, 3, 7, 1 << 30)]
    found: dict[str, dict[str, Any]] = {}
    for change in tries:
        try:
            at = kernel.sizes_at({**sizes, **change})
            launch = kernel.at(**at)
            grid = kernel.grid_at(at, launch)
        except SwizzleSimError:
            continue
        if tiled and grid.tiles is None:
            continue
        tiles = list(grid.tiles) if grid.tiles else None
        described = {"grid": list(grid.launch), "tiles": tiles, "sizes": dict(at), "values": launch.integers}
        found.setdefault(str(grid), described)
    return list(found.values())[:MAX_GRIDS]


def _save_made(request: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Write the arrays that the declaration makes, or what its reference gives for ``given.npz``, to ``made.npz``."""
    path = Path(request["path"])
    kernel = declared(path, request["name"])
    reference = kernel.reference if request["verb"] == "reference" else None
    if request["verb"] == "reference" and reference is None:
        raise CaptureError(f"{path.name}: {kernel.name} declares no reference", code="declaration")
    try:
        if reference is not None:
            with np.load(folder / "given.npz") as given:
                made = reference(dict(given))
        else:
            made = kernel.at(**kernel.sizes_at(request["sizes"])).make_inputs(request["seed"])
        arrays = {name: np.asarray(value) for name, value in made.items()}
    except MemoryError:
        raise
    except Exception as error:
        raise CaptureError(
            f"{line_of(error, path)}: {kernel.name}: {type(error).__name__}: {error}", code="declaration"
        ) from error
    np.savez(folder / "made.npz", **arrays)  # type: ignore[arg-type]
    return {}


VERBS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {"configurations": configurations, "describe": describe}
