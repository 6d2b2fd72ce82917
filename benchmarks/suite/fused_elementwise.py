"""Fused elementwise: out = max(x * y + z, 0), three streams in and one out.

Sources: SwizzlePerf (arXiv 2508.20258); measured there on 2**24 items in fp16.
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

TRITON = Path(__file__).with_name("fused_elementwise_triton.py")
ITEM_BYTES = 2  # fp16
FLOPS_PER_ITEM = 3  # multiply, add, compare
NUM_WARPS = 4
COMPILED = {((1024,), 4): (16, 0, 568), ((4096,), 4): (48, 0, 1044)}

SHARING = """\
Workgroup i reads BLOCK_SIZE items of each of X, Y and Z and writes as many of OUT, each once. Nothing is shared: every
order of workgroups costs the same traffic, and only the order of addresses in time differs."""


def fused_elementwise(*, n_elements: int = 1 << 24, BLOCK_SIZE: int = 1024) -> Kernel:
    """Multiply, add and clamp of fp16 vectors.

    Raises
    ------
    SizeError
        If the block is no power of two, or the problem is too large to trace.
    """
    problem = {"n_elements": n_elements, "BLOCK_SIZE": BLOCK_SIZE}
    check_block("fused_elementwise", most=1 << 16, BLOCK_SIZE=BLOCK_SIZE)
    workgroups = -(-n_elements // BLOCK_SIZE)
    touches = 4 * workgroups * (1 + BLOCK_SIZE * ITEM_BYTES / 128)
    check_traceable("fused_elementwise", workgroups=workgroups, instructions=4 * workgroups, touches=touches)
    return Kernel(
        name="fused_elementwise",
        summary="out = max(x * y + z, 0), fp16, one block of items a workgroup",
        problem=problem,
        dtype="fp32",
        grid=Grid((workgroups,)),
        flops=float(FLOPS_PER_ITEM * n_elements),
        issued_flops=float(FLOPS_PER_ITEM * workgroups * BLOCK_SIZE),
        resources=resources(COMPILED, (BLOCK_SIZE,), num_warps=NUM_WARPS, in_flight=3),
        build_trace=lambda line_bytes: trace(problem, line_bytes),
        reference=reference,
        make_inputs=lambda seed: make_inputs(problem, seed),
        triton_source=TRITON.read_text(encoding="utf-8"),
        sharing=SHARING,
        sources=("arXiv 2508.20258",),
        at_grids=lambda: row_grids(problem, "n_elements", "BLOCK_SIZE"),
        make_launch=lambda: launch(problem),
    )


def launch(problem: Mapping[str, int]) -> Launch:
    """Launch of the Triton kernel at one size."""
    n = problem["n_elements"]
    return Launch(
        path=TRITON,
        function="fused_elementwise",
        arguments={
            **{f"{name}_ptr": Array(shape=(n,), dtype="fp16") for name in "xyz"},
            "out_ptr": Array(shape=(n,), dtype="fp16", role="out"),
            "n_elements": n,
        },
        constexprs={"BLOCK_SIZE": problem["BLOCK_SIZE"]},
        grid=(-(-n // problem["BLOCK_SIZE"]),),
        num_warps=NUM_WARPS,
        make_inputs=lambda seed: {f"{name}_ptr": values for name, values in make_inputs(problem, seed).items()},
    )


def trace(problem: Mapping[str, int], line_bytes: int) -> Trace:
    """Access model: a load of each of x, y and z, a store of out."""
    n, block = problem["n_elements"], problem["BLOCK_SIZE"]
    workgroups = -(-n // block)
    build = TraceBuilder(n_workgroups=workgroups, line_bytes=line_bytes)
    arrays = [build.place(name, shape=(n,), item_bytes=ITEM_BYTES) for name in ("x", "y", "z", "out")]
    piece = {"at": (np.arange(workgroups) * block,), "size": (block,)}
    build.step(*(build.read_box(array, **piece) for array in arrays[:3]), build.write_box(arrays[3], **piece))
    return build.trace()


def make_inputs(problem: Mapping[str, int], seed: int) -> dict[str, np.ndarray]:
    """Random fp16 vectors of unit scale."""
    draw = np.random.default_rng(seed)
    return {name: draw.standard_normal(problem["n_elements"], np.float32).astype(np.float16) for name in "xyz"}


def reference(inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Out in fp16; the product of two fp16 is exact in fp32, so fused and separate arithmetic agree."""
    x, y, z = (inputs[name].astype(np.float32) for name in "xyz")
    return {"out": np.maximum(x * y + z, np.float32(0)).astype(np.float16)}
