"""The process that imports Triton and runs users' files: ``python -m swizzle_sim.capture.worker``.

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
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from swizzle_sim.capture import describe
from swizzle_sim.capture.check import check, sample
from swizzle_sim.capture.follow import follow
from swizzle_sim.capture.interpret import interpret_all
from swizzle_sim.capture.kernel_file import forget_files, own_files
from swizzle_sim.capture.language import Language, load_parts
from swizzle_sim.capture.loaded_kernel import LoadedKernel
from swizzle_sim.capture.memory import AddressSpace, real_items
from swizzle_sim.capture.trace_file import ARRAYS
from swizzle_sim.launch import Launch
from xcd_model.errors import SwizzleSimError

EVERY_S = 0.2  # between two reports


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
    spent = request["verb"] == "capture"  # which patches Triton's language
    try:
        reply = VERBS[request["verb"]](request, folder, say)
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
    parts = load_parts()
    language = Language(parts)
    items = []
    for i, described in enumerate(request["launches"]):
        launch = Launch.from_dict(described)
        try:
            items.append(_capture_one(language, launch, request, folder, i, _reporter(say, launch.function)))
        except SwizzleSimError as error:
            items.append({"error": {"code": error.code, "message": str(error)}})
    return {"items": items, "triton": parts.version, "dependencies": own_files()}


def _capture_one(language: Language, launch: Launch, request, folder: Path, i: int, on_progress) -> dict[str, Any]:
    space = AddressSpace.place(launch.arrays)
    kernel = LoadedKernel(language, launch, space)
    path = folder / f"inputs-{i}.npz"
    data = real_items(space, path if path.exists() else None, everything=request["full"], seed=request["seed"])
    checked = []
    if request["full"]:
        trace = interpret_all(kernel, request["line_bytes"], data, on_progress)
        n_paths = None
    else:
        trace, paths = follow(kernel, request["line_bytes"], data, on_progress)
        n_paths = len(paths)
        checked = check(kernel, trace, sample(kernel.grid, paths, request["seed"]), data)
    np.savez(folder / f"trace-{i}.npz", **{name: getattr(trace, name) for name in ARRAYS})
    return {"paths": n_paths, "checked": checked}


def _reporter(say: Any, name: str) -> Callable[[int, int], None]:
    last = [0.0]

    def report(done: int, total: int) -> None:
        if time.monotonic() - last[0] > EVERY_S:
            last[0] = time.monotonic()
            print(json.dumps({"name": name, "done": done, "total": total}), file=say, flush=True)

    return report


VERBS: dict[str, Callable[[dict[str, Any], Path, Any], dict[str, Any]]] = {
    "capture": _capture,
    "describe": lambda request, folder, say: describe.describe(request),
    "inputs": lambda request, folder, say: describe.save_inputs(request, folder),
    "reference": lambda request, folder, say: describe.save_reference(request, folder),
}

if __name__ == "__main__":
    main()
    os._exit(0)  # Triton leaves nothing that needs an orderly end
