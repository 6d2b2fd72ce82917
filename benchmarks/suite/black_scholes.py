"""Black-Scholes: one explicit step in time of the equation, each value from itself and its two neighbours.

Sources: SwizzlePerf (arXiv 2508.20258); measured there on 2**28 items in fp32.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from swizzle_sim.language.grid import Grid
from swizzle_sim.workload.kernels import Kernel
from swizzle_sim.workload.launch import Array, Launch
from xcd_model import Trace, TraceBuilder

from .base import check_block, check_traceable, resources, row_grids

TRITON = Path(__file__).with_name("black_scholes_triton.py")
ITEM_BYTES = 4  # fp32
FLOPS_PER_ITEM = 14  # as written in the Triton source
STRIKE, RATE, VOLATILITY = 100.0, 0.05, 0.2
SPACING, STEP = 0.5, 1e-4  # of the grid of spots, and in time [years]
DIFFUSION, DRIFT = VOLATILITY**2 / (2 * SPACING**2), RATE / (2 * SPACING)
NUM_WARPS = 4
COMPILED = {((1024,), 4): (32, 0, 888), ((4096,), 4): (64, 0, 2536)}

SHARING = """\
Workgroup i reads BLOCK_SIZE spots and values, the values three times, shifted by one item down and up, and writes as
many new values. The shifted loads hit what the workgroup has just read; across its borders a workgroup shares one
item, and so one line, with each neighbour. Everything else is a stream."""


def black_scholes(*, n_assets: int = 1 << 28, BLOCK_SIZE: int = 1024) -> Kernel:
    """One step of fp32 values on a grid of spots.

    Raises
    ------
    SizeError
        If the block is no power of two, or the problem is too large to trace.
    """
    problem = {"n_assets": n_assets, "BLOCK_SIZE": BLOCK_SIZE}
    check_block("black_scholes", most=1 << 16, BLOCK_SIZE=BLOCK_SIZE)
    workgroups = -(-n_assets // BLOCK_SIZE)
    touches = 5 * workgroups * (2 + BLOCK_SIZE * ITEM_BYTES / 128)
    check_traceable("black_scholes", workgroups=workgroups, instructions=5 * workgroups, touches=touches)
    return Kernel(
        name="black_scholes",
        summary="one explicit step of the Black-Scholes equation, fp32, one block of a grid of spots a workgroup",
        problem=problem,
        dtype="fp32",
        grid=Grid((workgroups,)),
        flops=float(FLOPS_PER_ITEM * n_assets),
        issued_flops=float(FLOPS_PER_ITEM * workgroups * BLOCK_SIZE),
        resources=resources(COMPILED, (BLOCK_SIZE,), num_warps=NUM_WARPS, in_flight=4),
        build_trace=lambda line_bytes: trace(problem, line_bytes),
        reference=reference,
        make_inputs=lambda seed: make_inputs(problem, seed),
        triton_source=TRITON.read_text(encoding="utf-8"),
        sharing=SHARING,
        sources=("arXiv 2508.20258", "Black and Scholes, Journal of Political Economy 81(3), 1973"),
        at_grids=lambda: row_grids(problem, "n_assets", "BLOCK_SIZE"),
        make_launch=lambda: launch(problem),
    )


def launch(problem: Mapping[str, int]) -> Launch:
    """Launch of the Triton kernel at one size."""
    n = problem["n_assets"]
    return Launch(
        path=TRITON,
        function="black_scholes",
        arguments={
            "s_ptr": Array(shape=(n,), dtype="fp32"),
            "v_ptr": Array(shape=(n,), dtype="fp32"),
            "price_ptr": Array(shape=(n,), dtype="fp32", role="out"),
            **{"n_assets": n, "diffusion": DIFFUSION, "drift": DRIFT, "rate": RATE, "step": STEP},
        },
        constexprs={"BLOCK_SIZE": problem["BLOCK_SIZE"]},
        grid=(-(-n // problem["BLOCK_SIZE"]),),
        num_warps=NUM_WARPS,
        make_inputs=lambda seed: {f"{name}_ptr": values for name, values in make_inputs(problem, seed).items()},
    )


def trace(problem: Mapping[str, int], line_bytes: int) -> Trace:
    """Access model: loads of s and of v one down, in place and one up; a store of the new values."""
    n, block = problem["n_assets"], problem["BLOCK_SIZE"]
    first = np.arange(-(-n // block)) * block
    build = TraceBuilder(n_workgroups=first.size, line_bytes=line_bytes)
    s, v, price = (build.place(name, shape=(n,), item_bytes=ITEM_BYTES) for name in ("s", "v", "price"))
    build.step(
        build.read_box(s, at=(first,), size=(block,)),
        *(build.read_box(v, at=(first + shift,), size=(block,)) for shift in (-1, 0, 1)),
        build.write_box(price, at=(first,), size=(block,)),
    )
    return build.trace()


def make_inputs(problem: Mapping[str, int], seed: int) -> dict[str, np.ndarray]:
    """Spots around the strike, values of a tenth of it and less."""
    draw = np.random.default_rng(seed)
    n = problem["n_assets"]
    return {
        "s": draw.uniform(0.5 * STRIKE, 1.5 * STRIKE, n).astype(np.float32),
        "v": draw.uniform(0.0, 0.1 * STRIKE, n).astype(np.float32),
    }


def reference(inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Values in fp32, computed in fp64; the first and the last have themselves for a neighbour."""
    spot, here = inputs["s"].astype(np.float64), inputs["v"].astype(np.float64)
    padded = np.pad(here, 1, mode="edge")
    before, after = padded[:-2], padded[2:]
    gain = DIFFUSION * spot**2 * (after - 2 * here + before) + DRIFT * spot * (after - before) - RATE * here
    return {"price": (here + STEP * gain).astype(np.float32)}
