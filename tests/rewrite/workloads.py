"""The kernels of this folder as `Workload`s, small enough to interpret."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from swizzle_sim.capture.workload import Workload
from swizzle_sim.language import Grid
from swizzle_sim.workload.launch import Array, Launch

FILE = Path(__file__).with_name("kernels_triton.py")
DRAWN = {"fp32": "f4", "bf16": "f4", "fp16": "f2"}


def workload(function, grid, arrays, numbers, constants):
    """A kernel of the file at these sizes; what it reads is drawn."""

    def make(seed):
        rng = np.random.default_rng(seed)
        read = {name: one for name, one in arrays.items() if one.role != "out"}
        return {name: rng.standard_normal(one.shape).astype(DRAWN[one.dtype]) for name, one in read.items()}

    given = {"arguments": {**arrays, **numbers}, "constexprs": constants, "grid": grid, "make_inputs": make}
    launch = Launch(path=FILE, function=function, **given)
    return Workload(name=function, problem=numbers, grid=Grid(grid), launch=launch, others=(), at=None)


def x_to_y(dtype, *shape):
    """An array that is read, and one of its shape that is written."""
    return {f"{name}_ptr": Array(shape=shape, dtype=dtype, role=role) for name, role in (("x", "in"), ("y", "out"))}


def add_2d():
    return workload("add_2d", (5, 6), x_to_y("fp32", 23, 70), {"height": 23, "width": 70}, {"ROWS": 4, "COLS": 16})


def copy_3d():
    return workload("copy_3d", (3, 3, 5), x_to_y("bf16", 5, 3, 40), {"nx": 40, "ny": 3, "nz": 5}, {"BX": 16})


def persistent():
    """20 tiles."""
    shapes = {"a_ptr": (75, 40), "b_ptr": (40, 50), "c_ptr": (75, 50)}
    roles = {"a_ptr": "in", "b_ptr": "in", "c_ptr": "out"}
    arrays = {name: Array(shape=shape, dtype="fp16", role=roles[name]) for name, shape in shapes.items()}
    constants = {"BLOCK_M": 16, "BLOCK_N": 16, "BLOCK_K": 16, "EVEN_K": False, "NUM_SMS": 8}
    return workload("persistent", (8,), arrays, {"M": 75, "N": 50, "K": 40}, constants)


def rows_while():
    return workload("rows_while", (5,), x_to_y("fp32", 21, 30), {"n_rows": 21, "width": 30}, {"COLS": 32})


def fill():
    arrays = {"y_ptr": Array(shape=(75, 50), dtype="fp32", role="out")}
    return workload("fill", (5, 4), arrays, {"m": 75, "n": 50}, {"BLOCK_M": 16, "BLOCK_N": 16})


def flat(function="flat"):
    numbers = {"n_rows": 21, "width": 70}
    return workload(function, (5,), x_to_y("fp32", 21, 70), numbers, {"COLS": 32, "NUM_SMS": 5})


def behind(late=True):
    plain = flat(function="behind")
    launch = replace(
        plain.launch,
        arguments={**plain.launch.arguments, "spare_ptr": None},
        constexprs={"COLS": 128, "NUM_SMS": 5, "LATE": late},
    )
    return replace(plain, launch=launch)


def behind_handed():
    return behind(late=False)


def flat_last():
    return flat("flat_last")


def histogram():
    arrays = {"x_ptr": Array(shape=(1000,), dtype="fp32"), "sums_ptr": Array(shape=(3,), dtype="fp32", role="inout")}
    return workload("histogram", (16,), arrays, {"n": 1000}, {"BLOCK_SIZE": 64})
