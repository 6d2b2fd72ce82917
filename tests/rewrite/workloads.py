"""The kernels of this folder as `Workload`s, small enough to interpret."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from swizzle_sim.capture.workload import Workload
from swizzle_sim.language import Grid
from swizzle_sim.workload.launch import Array, Launch

FILE = Path(__file__).with_name("kernels_triton.py")


def kernel(launch, grid, **problem):
    return Workload(name=launch.function, problem=problem, grid=grid, launch=launch, others=(), at=None)


def draw(**shapes):
    def make(seed):
        rng = np.random.default_rng(seed)
        return {name: rng.standard_normal(shape).astype(dtype) for name, (shape, dtype) in shapes.items()}

    return make


def launched(function, arguments, constexprs, grid, make_inputs, path=FILE):
    return Launch(
        path=path, function=function, arguments=arguments, constexprs=constexprs, grid=grid, make_inputs=make_inputs
    )


def add_2d(height=23, width=70):
    grid = (-(-width // 16), -(-height // 4))
    arrays = {
        "x_ptr": Array(shape=(height, width), dtype="fp32"),
        "y_ptr": Array(shape=(height, width), dtype="fp32", role="out"),
    }
    launch = launched(
        "add_2d",
        {**arrays, "height": height, "width": width},
        {"ROWS": 4, "COLS": 16},
        grid,
        draw(x_ptr=((height, width), "f4")),
    )
    return kernel(launch, Grid(grid), height=height, width=width)


def copy_3d(nx=40, ny=3, nz=5):
    grid = (-(-nx // 16), ny, nz)
    arrays = {
        "x_ptr": Array(shape=(nz, ny, nx), dtype="bf16"),
        "y_ptr": Array(shape=(nz, ny, nx), dtype="bf16", role="out"),
    }
    launch = launched(
        "copy_3d", {**arrays, "nx": nx, "ny": ny, "nz": nz}, {"BX": 16}, grid, draw(x_ptr=((nz, ny, nx), "f4"))
    )
    return kernel(launch, Grid(grid), nx=nx, ny=ny, nz=nz)


def persistent(m=75, n=50, k=40, programs=8):
    tiles = -(-m // 16) * -(-n // 16)
    arrays = {
        "a_ptr": Array(shape=(m, k), dtype="fp16"),
        "b_ptr": Array(shape=(k, n), dtype="fp16"),
        "c_ptr": Array(shape=(m, n), dtype="fp16", role="out"),
    }
    launch = launched(
        "persistent",
        {**arrays, "M": m, "N": n, "K": k},
        {"BLOCK_M": 16, "BLOCK_N": 16, "BLOCK_K": 16, "EVEN_K": k % 16 == 0, "NUM_SMS": programs},
        (min(programs, tiles),),
        draw(a_ptr=((m, k), "f2"), b_ptr=((k, n), "f2")),
    )
    return kernel(launch, Grid((min(programs, tiles),)), M=m, N=n, K=k)


def rows_while(rows=21, programs=5):
    arrays = {
        "x_ptr": Array(shape=(rows, 30), dtype="fp32"),
        "y_ptr": Array(shape=(rows, 30), dtype="fp32", role="out"),
    }
    launch = launched(
        "rows_while", {**arrays, "n_rows": rows, "width": 30}, {"COLS": 32}, (programs,), draw(x_ptr=((rows, 30), "f4"))
    )
    return kernel(launch, Grid((programs,)), n_rows=rows)


def fill(m=75, n=50):
    grid = (-(-m // 16), -(-n // 16))
    arrays = {"y_ptr": Array(shape=(m, n), dtype="fp32", role="out")}
    launch = launched("fill", {**arrays, "m": m, "n": n}, {"BLOCK_M": 16, "BLOCK_N": 16}, grid, draw())
    return kernel(launch, Grid(grid), m=m, n=n)


def behind(late=True):
    plain = flat(function="behind")
    launch = replace(
        plain.launch,
        arguments={**plain.launch.arguments, "spare_ptr": None},
        constexprs={"COLS": 128, "NUM_SMS": 5, "LATE": late},
    )
    return kernel(launch, plain.grid, **plain.problem)


def behind_handed():
    return behind(late=False)


def flat_last():
    return flat(function="flat_last")


def flat(rows=21, programs=5, function="flat"):
    arrays = {
        "x_ptr": Array(shape=(rows, 70), dtype="fp32"),
        "y_ptr": Array(shape=(rows, 70), dtype="fp32", role="out"),
    }
    constants = {"COLS": 32, "NUM_SMS": programs}
    inputs = draw(x_ptr=((rows, 70), "f4"))
    launch = launched(function, {**arrays, "n_rows": rows, "width": 70}, constants, (programs,), inputs)
    return kernel(launch, Grid((programs,)), n_rows=rows)


def histogram(n=1000):
    grid = (-(-n // 64),)
    arrays = {"x_ptr": Array(shape=(n,), dtype="fp32"), "sums_ptr": Array(shape=(3,), dtype="fp32", role="inout")}
    launch = launched(
        "histogram", {**arrays, "n": n}, {"BLOCK_SIZE": 64}, grid, draw(x_ptr=((n,), "f4"), sums_ptr=((3,), "f4"))
    )
    return kernel(launch, Grid(grid), n=n)
