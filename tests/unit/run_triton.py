"""Run emitted helpers under Triton itself; a process of its own, as Triton fixes its mode on import.

    python -m tests.unit.run_triton interpret|compile FOLDER      (with TRITON_INTERPRET=1 for interpret)

FOLDER holds ``<case>.py``, each with a kernel, and ``cases.json``: ``{case: {grid, table, n_results}}``. Interpreting
writes ``answers.json``, ``{case: rows}``; compiling for an MI300X only has to succeed.
"""

import functools
import importlib
import json
import sys
from pathlib import Path

import numpy as np


@functools.cache
def language():
    """Triton's language, patched once."""
    from swizzle_sim.capture.language import Language

    return Language()


def interpret(kernel, case):
    from swizzle_sim.rewrite.check_worker import Watched, loaded
    from swizzle_sim.workload.launch import Array, Launch

    given = np.array(case["table"], np.int32)
    given = given if given.size else np.zeros((len(given), 1), np.int32)
    shapes = given.shape, (len(given), case["n_results"])
    arrays = {name: Array(shape=shape, dtype="int32") for name, shape in zip(("table", "out"), shapes, strict=True)}
    file = Path(sys.modules[kernel.fn.__module__].__file__)
    grid = tuple(case["grid"])
    launch = Launch(path=file, function="kernel", arguments=arrays, constexprs={"XCDS": 8}, grid=grid)
    memory = {0: given.ravel(), 1: np.zeros(shapes[1], np.int32).ravel()}
    real = Watched(loaded(language(), launch), memory)
    for program in range(int(np.prod(grid))):
        real.run(program)
    return memory[1].reshape(shapes[1]).tolist()


def compile_for_mi300x(kernel, _):
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    signature = {"table": "*i32", "out": "*i32", "XCDS": "constexpr"}
    source = ASTSource(kernel, signature, constexprs={"XCDS": 8})
    compiled = triton.compile(source, target=GPUTarget("hip", "gfx942", 64))
    return ".amdhsa_kernel" in compiled.asm["amdgcn"]


def main(mode, folder):
    sys.path.insert(0, folder)
    cases = json.loads(Path(folder, "cases.json").read_text())
    work = {"interpret": interpret, "compile": compile_for_mi300x}[mode]
    answers = {name: work(importlib.import_module(name).kernel, case) for name, case in cases.items()}
    Path(folder, "answers.json").write_text(json.dumps(answers))


if __name__ == "__main__":
    main(*sys.argv[1:])
