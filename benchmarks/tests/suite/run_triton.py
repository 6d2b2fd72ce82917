"""Run suite kernels under TRITON_INTERPRET=1: ``python -m benchmarks.tests.suite.run_triton CASES_JSON FOLDER``.

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
from swizzle_sim.rewrite.check_worker import GUARD_ITEMS, Tensor
from swizzle_sim.workload.kernels import kernel

SENTINEL = {"f": np.nan, "i": -99}


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
        buffers[argument] = tensor = Tensor(array.dtype, array.shape, array.item_strides, array.n_items)
        tensor.memory[:] = SENTINEL[tensor.memory.dtype.kind]
        if argument in inputs:
            tensor.put(inputs[argument])
    before = {argument: tensor.memory.copy() for argument, tensor in buffers.items()}
    arguments = [buffers.get(argument, value) for argument, value in launch.arguments.items()]
    if order is not None:
        interpreter_builder.set_grid_idx = swizzled(launch.grid, order)
    for _ in range(launches):
        jitted(launch)[launch.grid](*arguments, **launch.constexprs)
    vars(interpreter_builder).pop("set_grid_idx", None)
    for argument, array in launch.arrays.items():
        changed = buffers[argument].memory.view(np.uint8) != before[argument].view(np.uint8)
        outside = changed.reshape(before[argument].size, -1).any(axis=1)
        if outside[:GUARD_ITEMS].any() or outside[-GUARD_ITEMS:].any() or (array.role == "in" and changed.any()):
            sys.exit(f"{name} {sizes}: stored where it must not, around or in {argument}")
    np.savez(
        out,
        **{
            argument.removesuffix("_ptr"): buffers[argument].values
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
