"""Run kernels under TRITON_INTERPRET=1: ``python -m tests.suite.run_beyond FOLDER``.

FOLDER holds ``cases.json``, ``[[kernel, sizes], ...]``. Every case runs as launched and with its programs in another
order, the hardware ids (those of a persistent kernel's programs) mapped by a swizzle; every output starts as NaN
between guard items. Writes ``<i>.npz`` with ``<order>/<output>`` for each case.
"""

import importlib.util
import json
import sys
from pathlib import Path

import numpy as np
from triton.runtime import interpreter

from swizzle_sim.capture.patched_once import patch_once_a_launch
from swizzle_sim.language import Grid, Swizzle, family
from swizzle_sim.workload.kernels import kernel

GUARD = 64  # items before and after an output that no workgroup may store to
NUMPY = {"fp16": np.float16, "fp32": np.float32, "int32": np.int32}
SWIZZLES = {1: "contiguous", 2: "contiguous+group_m(size=3)", 3: "contiguous+boxes(x=1, y=2, z=2)"}


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


def swizzled(grid):
    """Logical ids of the hardware ids of a grid under a swizzle that moves most of them."""
    axes = 1 if grid.tiles else len(grid.launch)
    spec = SWIZZLES[2 if grid.tiles or axes == 2 else axes]
    return Swizzle.parse(family(spec)).permutation(grid, 8)


def run(work, ids):
    """Outputs with program ``p`` computing workgroup ``ids[p]``."""
    launch = work.launch
    inputs = launch.make_inputs(0)
    arguments, outputs = [], {}
    for name, value in launch.arguments.items():
        if name in launch.arrays and value.role == "out":
            room = np.full(value.n_items + 2 * GUARD, np.nan, NUMPY[value.dtype])
            outputs[name] = (room, value.shape)
            arguments.append(Tensor(room, GUARD))
        else:
            arguments.append(Tensor(inputs[name].reshape(-1).copy()) if name in launch.arrays else value)
    gx, gy = (*launch.grid, 1)[:2]
    plain = interpreter.interpreter_builder.set_grid_idx

    def remapped(x, y, z):
        w = int(ids[x + gx * (y + gy * z)])
        plain(w % gx, w // gx % gy, w // (gx * gy))

    interpreter.interpreter_builder.set_grid_idx = remapped
    try:
        jitted(launch)[launch.grid](*arguments, **launch.constexprs)
    finally:
        interpreter.interpreter_builder.set_grid_idx = plain
    found = {}
    for name, (room, shape) in outputs.items():
        if not (np.isnan(room[:GUARD]).all() and np.isnan(room[-GUARD:]).all()):
            sys.exit(f"{work.name}: stored outside {name}")
        found[name.removesuffix("_ptr")] = room[GUARD:-GUARD].reshape(shape)
    return found


def main(folder):
    patch_once_a_launch(interpreter)
    for i, (name, sizes) in enumerate(json.loads(Path(folder, "cases.json").read_text())):
        work = kernel(name, **sizes)
        launched = Grid(work.launch.grid) if work.programs else work.grid
        orders = {"plain": np.arange(launched.num_pids), "swizzled": swizzled(launched)}
        answers = {f"{order}/{out}": values for order, ids in orders.items() for out, values in run(work, ids).items()}
        np.savez(Path(folder, f"{i}.npz"), moved=np.count_nonzero(orders["swizzled"] != orders["plain"]), **answers)


if __name__ == "__main__":
    main(*sys.argv[1:])
