"""Run the megakernel with all programs alive: ``python -m benchmarks.tests.suite.run_megakernel FOLDER``, interpreted.

FOLDER holds ``cases.json``, ``[[sizes, expression, seed], ...]``: the tile that a claimed ``tile`` stands for, in
Triton. Flags begin at 0. One program runs at a time; who is next is drawn anew at each claim and where a flag is not
set. Writes ``<i>.npz`` with ``y``, or with ``stuck`` where no program can go on.
"""

import dataclasses
import json
import random
import sys
import threading
from pathlib import Path

import numpy as np
from triton.runtime import interpreter

from benchmarks.tests.suite.run_triton import jitted
from swizzle_sim.capture.patched_once import patch_once_a_launch
from swizzle_sim.rewrite.check_worker import Tensor
from swizzle_sim.workload.kernels import kernel

BUILDER = interpreter.interpreter_builder


class Stuck(Exception):
    """Every program that is left waits for a flag."""


class Turns:
    """Programs in threads of which one runs at a time."""

    def __init__(self, programs, seed):
        self.draw, self.alive, self.waiting = random.Random(seed), set(range(programs)), set()
        self.changed, self.running, self.stuck, self.failed = threading.Condition(), None, False, None

    def go_on(self):
        ready = sorted(self.alive - self.waiting)
        self.stuck |= bool(self.alive) and not ready
        self.running = self.draw.choice(ready) if ready else None
        self.changed.notify_all()

    def wait_for_turn(self, program):
        self.changed.wait_for(lambda: self.stuck or self.running == program)
        if self.stuck:
            raise Stuck
        BUILDER.set_grid_idx(program, 0, 0)

    def pause(self, *, waits):
        """Let another program go on; one that waits is not asked again before some other has gone on."""
        with self.changed:
            program = self.running
            if waits:
                self.waiting.add(program)
            else:
                self.waiting.clear()
            self.go_on()
            self.wait_for_turn(program)

    def run(self, program, body):
        try:
            with self.changed:
                self.wait_for_turn(program)
            body()
        except Stuck:
            pass
        except BaseException as error:
            self.failed = error
        with self.changed:
            self.alive.discard(program)
            self.waiting.clear()
            self.go_on()


def run(sizes, expression, seed, folder):
    launch = kernel("mlp_megakernel", **sizes).launch
    path = folder / f"ordered_{seed}.py"  # sources are kept by name
    text = launch.path.read_text().replace("pid_m = tile //", f"own = {expression}\n        pid_m = own //")
    path.write_text(text.replace("pid_n = tile %", "pid_n = own %"))
    tensors = {name: Tensor(one.dtype, one.shape, one.item_strides, one.n_items) for name, one in launch.arrays.items()}
    for name, values in launch.make_inputs(0).items():
        tensors[name].put(values)
    tensors["done_ptr"].values[:], tensors["y_ptr"].values[:] = 0, np.nan
    given = {name: interpreter._implicit_cvt(tensors.get(name, value)) for name, value in launch.arguments.items()}
    turns, body = Turns(launch.grid[0], seed), jitted(dataclasses.replace(launch, path=path))
    function, load, claim = body.rewrite(), BUILDER.create_masked_load, BUILDER.create_atomic_rmw

    def polled(pointers, *more):
        found = load(pointers, *more)
        if "int32" in str(pointers.get_element_ty()) and (found.data == 0).any():
            turns.pause(waits=True)
        return found

    def claimed(*more):
        turns.pause(waits=False)
        return claim(*more)

    BUILDER.create_masked_load, BUILDER.create_atomic_rmw = polled, claimed
    scope = interpreter._patch_lang(body.fn)
    BUILDER.set_grid_dim(launch.grid[0], 1, 1)
    program = lambda: function(**given, **launch.constexprs)  # noqa: E731
    threads = [threading.Thread(target=turns.run, args=(p, program)) for p in range(launch.grid[0])]
    try:
        for thread in threads:
            thread.start()
        with turns.changed:
            turns.go_on()
        for thread in threads:
            thread.join()
    finally:
        scope.restore()
        BUILDER.create_masked_load, BUILDER.create_atomic_rmw = load, claim
    if turns.failed:
        raise turns.failed
    return {"stuck": True} if turns.stuck else {"y": tensors["y_ptr"].values}


def main(folder):
    patch_once_a_launch(interpreter)
    where = Path(folder)
    for i, (sizes, expression, seed) in enumerate(json.loads((where / "cases.json").read_text())):
        np.savez(where / f"{i}.npz", **run(sizes, expression, seed, where))


if __name__ == "__main__":
    main(*sys.argv[1:])
