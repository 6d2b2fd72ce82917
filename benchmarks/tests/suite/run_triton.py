"""Run suite kernels under TRITON_INTERPRET=1: ``python -m benchmarks.tests.suite.run_triton CASES_JSON FOLDER``.

A case is ``[kernel, sizes, order, launches]``: ``order`` is the tile that each hardware id works on, or null for its
own. Nobody may store outside a tensor; outputs hold a sentinel until the kernel stores.
"""

import json
import sys
from pathlib import Path

import numpy as np

from swizzle_sim.capture.language import Language
from swizzle_sim.capture.memory import real_items
from swizzle_sim.rewrite.check_worker import Watched, loaded
from swizzle_sim.workload.kernels import kernel

SENTINEL = {"f": np.nan, "i": -99}


def prepared(language, launch):
    """The kernel of a launch with its tensors filled: a run of its programs changes ``memory``."""
    real = loaded(language, launch)
    memory = real_items(real.space, launch.make_inputs(0), everything=True, seed=0)
    for i, array in enumerate(real.space.arrays):
        if array.role == "out":
            memory[i][:] = SENTINEL[memory[i].dtype.kind]
    return Watched(real, memory)


def run(language, name, sizes, order, launches, out):
    real = prepared(language, kernel(name, **sizes).launch)
    arrays, before = real.space.arrays, {i: items.copy() for i, items in real.memory.items()}
    for _ in range(launches):
        for program in range(int(np.prod(real.kernel.grid))) if order is None else order:
            real.run(program)
    found = {}
    for i, (argument, array) in enumerate(zip(real.space.names, arrays, strict=True)):
        if array.role == "in" and real.memory[i].tobytes() != before[i].tobytes():
            sys.exit(f"{name} {sizes}: stored in {argument}")
        if array.role != "in":
            found[argument.removesuffix("_ptr")] = real.memory[i].reshape(array.shape)
    np.savez(out, **found)


def main(cases_json, folder):
    language = Language()
    for number, case in enumerate(json.loads(cases_json)):
        run(language, *case, Path(folder) / f"{number}.npz")


if __name__ == "__main__":
    main(*sys.argv[1:])
