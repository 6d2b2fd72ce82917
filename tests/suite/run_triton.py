"""Run suite kernels under TRITON_INTERPRET=1: ``python -m tests.suite.run_triton CASES_JSON FOLDER``.

A case is ``[kernel, sizes, order, launches]``: ``order`` is the tile that each hardware id works on, or null for its
own. Every tensor lies between guard items that nobody may store to; outputs hold a sentinel until the kernel stores.
"""

import importlib.util
import json
import sys
from pathlib import Path

import numpy as np
from triton.runtime import interpreter
from triton.runtime.interpreter import interpreter_builder

from swizzle_sim.capture.patched_once import patch_once_a_launch
from swizzle_sim.workload.kernels import kernel
from swizzle_sim.workload.launch import Array

GUARD = 64  # items before and after a tensor that no workgroup may store to
SENTINEL = {"f": np.nan, "i": -99}


class Tensor:
    """As much of a torch tensor, over a flat numpy array, as Triton's interpreter asks for."""

    def __init__(self, array, offset=0):
        self.array, self.offset, self.dtype = array, offset, f"torch.{array.dtype.name}"

    def data_ptr(self):
        return self.array.ctypes.data + self.offset * self.array.itemsize

    def untyped_storage(self):
        return self

    def cpu(self):
        return Tensor(self.array.copy())

    def copy_(self, other):
        self.array[...] = other.array

    def storage_offset(self):
        return self.offset

    def element_size(self):
        return self.array.itemsize

    def size(self):
        return self.array.shape

    def stride(self):
        return (1,)

    def new_empty(self, size, device=None):
        return Tensor(np.empty(size, self.array.dtype))

    def set_(self, storage, offset, size, stride):
        self.array, self.offset = storage.array, offset


def jitted(launch):
    found = importlib.util.spec_from_file_location(launch.path.stem, launch.path)
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return getattr(module, launch.function)


def swizzled(grid, order):
    """Make the hardware's ids, x fastest, work on the tiles that ``order`` names."""
    plain = type(interpreter_builder).set_grid_idx
    sides = (*grid, 1, 1)[:3]

    def set_grid_idx(x, y, z):
        tile = order[x + sides[0] * (y + sides[1] * z)]
        plain(interpreter_builder, tile % sides[0], tile // sides[0] % sides[1], tile // sides[0] // sides[1])

    return set_grid_idx


def run(name, sizes, order, launches, out):
    launch = kernel(name, **sizes).launch
    inputs, buffers = launch.make_inputs(0), {}
    for argument, array in launch.arrays.items():
        dtype = np.dtype(array.dtype.replace("fp", "float"))
        buffers[argument] = np.full(2 * GUARD + array.n_items, SENTINEL[dtype.kind], dtype)
        if argument in inputs:
            buffers[argument][GUARD:-GUARD] = inputs[argument].reshape(-1)
    before = {argument: buffer.copy() for argument, buffer in buffers.items()}
    arguments = [Tensor(buffers[a], GUARD) if isinstance(v, Array) else v for a, v in launch.arguments.items()]
    if order is not None:
        interpreter_builder.set_grid_idx = swizzled(launch.grid, order)
    for _ in range(launches):
        jitted(launch)[launch.grid](*arguments, **launch.constexprs)
    vars(interpreter_builder).pop("set_grid_idx", None)
    for argument, array in launch.arrays.items():
        changed = buffers[argument].view(np.uint8) != before[argument].view(np.uint8)
        outside = changed.reshape(buffers[argument].size, -1).any(axis=1)
        if outside[:GUARD].any() or outside[-GUARD:].any() or (array.role == "in" and changed.any()):
            sys.exit(f"{name} {sizes}: stored where it must not, around or in {argument}")
    np.savez(
        out,
        **{
            argument.removesuffix("_ptr"): buffers[argument][GUARD:-GUARD].reshape(array.shape)
            for argument, array in launch.arrays.items()
            if array.role != "in"
        },
    )


def main(cases_json, folder):
    patch_once_a_launch(interpreter)
    for number, (name, sizes, order, launches) in enumerate(json.loads(cases_json)):
        run(name, sizes, order, launches, Path(folder) / f"{number}.npz")


if __name__ == "__main__":
    main(*sys.argv[1:])
