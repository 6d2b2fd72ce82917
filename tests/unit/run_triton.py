"""Run emitted helpers under Triton itself; a process of its own, as Triton fixes its mode on import.

    python run_triton.py interpret|compile FOLDER      (with TRITON_INTERPRET=1 for interpret)

FOLDER holds ``<case>.py``, each with a kernel, and ``cases.json``: ``{case: {grid, table, n_results}}``. Interpreting
writes ``answers.json``, ``{case: rows}``; compiling for an MI300X only has to succeed.
"""

import importlib
import json
import sys
from pathlib import Path

import numpy as np


class Buffer:
    """As much of a torch tensor as Triton's interpreter asks for, over a numpy array."""

    dtype = "numpy.int32"

    def __init__(self, array):
        self.array = array

    def data_ptr(self):
        return self.array.ctypes.data

    def untyped_storage(self):
        return self

    def cpu(self):
        return self

    def new_empty(self, *_, **__):
        return Buffer(self.array)

    def set_(self, *_):
        return self

    def copy_(self, _):
        return self

    def storage_offset(self):
        return 0

    def size(self):
        return self.array.shape

    def stride(self):
        return (1,)

    def element_size(self):
        return 4


def interpret(kernel, case):
    table = np.array(case["table"], np.int32)
    out = np.full((len(table), case["n_results"]), -1, np.int32)
    kernel[tuple(case["grid"])](Buffer(table), Buffer(out), XCDS=8)
    return out.tolist()


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
