"""Run emitted helpers under Triton itself; a process of its own, as Triton fixes its mode on import.

    python -m tests.unit.run_triton interpret|compile FOLDER      (with TRITON_INTERPRET=1 for interpret)

FOLDER holds ``<case>.py``, each with a kernel, and ``cases.json``: ``{case: {grid, table, n_results}}``. Interpreting
writes ``answers.json``, ``{case: rows}``; compiling for an MI300X only has to succeed.
"""

import importlib
import json
import sys
from pathlib import Path

import numpy as np


def interpret(kernel, case):
    from swizzle_sim.rewrite.check_worker import Tensor

    given = np.array(case["table"], np.int32)
    table, out = (Tensor("int32", (len(given), n), (n, 1), len(given) * n) for n in (given.shape[1], case["n_results"]))
    table.put(given)
    kernel[tuple(case["grid"])](table, out, XCDS=8)
    return out.values.tolist()


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
