"""Compile kernels and print how often each width of load stands in the assembly, as JSON; run by a test.

python compiled_loads.py
"""

import collections
import json
import re
import sys
import warnings
from pathlib import Path

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

sys.path.insert(0, str(Path(__file__).parents[3]))

from swizzle_benchmarks.lab.nvidia_kernels import fidelity_stencil
from swizzle_benchmarks.suite.fdtd_2d_triton import fdtd_2d
from swizzle_benchmarks.suite.stencil_2d_triton import stencil_2d
from tests.capture.kernels.transposed import linear

LOAD = {"amdgcn": r"\b(?:global|buffer)_load_(\w+)", "ptx": r"\bld\.global(?:\.L1::\w+)?((?:\.v\d)?\.b\d+)"}
LINEAR = ["*fp16"] * 3 + ["i32"] * 3
TILE = {"BLOCK_SIZE_X": 32, "BLOCK_SIZE_Y": 32}
CASES = {
    "fdtd_2d gfx942": (fdtd_2d, ["*fp32"] * 3 + ["i32"] * 2, TILE, ("hip", "gfx942", 64)),
    "stencil_2d gfx942": (stencil_2d, ["*fp16"] * 2 + ["i32"] * 2, {"M": 32, "N": 32}, ("hip", "gfx942", 64)),
    "linear as rows gfx942": (linear, LINEAR, (64, True), ("hip", "gfx942", 64)),
    "linear as columns gfx942": (linear, LINEAR, (64, False), ("hip", "gfx942", 64)),
    "stencil sm_90": (fidelity_stencil, ["*i32", "*fp32", "*fp32", "i32", "i32"], (32, 128), ("cuda", 90, 32)),
}


def loads(kernel, types, tile, target):
    """Count of each width; arguments are divisible by 16, as pointers and sizes of these launches are."""
    names = kernel.arg_names
    sizes = dict(zip(names[len(types) :], tile.values() if isinstance(tile, dict) else tile, strict=True))
    signature = dict(zip(names, types, strict=False)) | dict.fromkeys(sizes, "constexpr")
    attributes = {(i,): [["tt.divisibility", 16]] for i in range(len(types))}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        source = ASTSource(kernel, signature, constexprs=sizes, attrs=attributes)
        compiled = triton.compile(source, target=GPUTarget(*target), options={"num_warps": 4})
    kind = "amdgcn" if target[0] == "hip" else "ptx"
    return collections.Counter(re.findall(LOAD[kind], compiled.asm[kind]))


if __name__ == "__main__":
    print(json.dumps({name: loads(*case) for name, case in CASES.items()}))
