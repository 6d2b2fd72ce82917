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

from benchmarks.tests.suite.run_triton import prepared
from swizzle_sim.capture.language import Language
from swizzle_sim.workload.kernels import kernel
from xcd_model.errors import CaptureError


class Stuck(CaptureError):
    """Every program that is left waits for a flag."""


class Turns:
    """Programs in threads of which one runs at a time."""

    def __init__(self, real, programs, seed):
        self.real = real
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
        self.real.builder.set_grid_idx(program, 0, 0)

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


def run(language, sizes, expression, seed, folder):
    launch = kernel("mlp_megakernel", **sizes).launch
    path = folder / f"ordered_{seed}.py"  # sources are kept by name
    text = launch.path.read_text().replace("pid_m = tile //", f"own = {expression}\n        pid_m = own //")
    path.write_text(text.replace("pid_n = tile %", "pid_n = own %"))
    real = prepared(language, dataclasses.replace(launch, path=path))
    tensors = {name: real.memory[i] for i, name in enumerate(real.space.names)}
    tensors["done_ptr"][:] = 0
    turns, builder = Turns(real, launch.grid[0], seed), real.builder
    load, claim = builder.create_masked_load, builder.create_atomic_rmw

    def polled(pointers, *more):
        found = load(pointers, *more)
        if "int32" in str(pointers.get_element_ty()) and (found.data == 0).any():
            turns.pause(waits=True)
        return found

    def claimed(*more):
        turns.pause(waits=False)
        return claim(*more)

    builder.create_masked_load, builder.create_atomic_rmw = polled, claimed
    threads = [
        threading.Thread(target=turns.run, args=(p, lambda: real.kernel.run(builder))) for p in range(launch.grid[0])
    ]
    for thread in threads:
        thread.start()
    with turns.changed:
        turns.go_on()
    for thread in threads:
        thread.join()
    if turns.failed:
        raise turns.failed
    return {"stuck": True} if turns.stuck else {"y": tensors["y_ptr"].reshape(launch.arrays["y_ptr"].shape)}


def main(folder):
    language, where = Language(), Path(folder)
    for i, (sizes, expression, seed) in enumerate(json.loads((where / "cases.json").read_text())):
        np.savez(where / f"{i}.npz", **run(language, sizes, expression, seed, where))


if __name__ == "__main__":
    main(*sys.argv[1:])
