"""Two-dimensional convolution, channels last, stride 1, zeros around: implicit GEMM, a patch of pixels a workgroup.

The default is a 3 x 3 layer of 512 channels on 128 x 128 pixels, as in the decoder of latent diffusion (arXiv
2112.10752), for 2 images: 4.5 MiB of weights, more than one L2, and 32 MiB of input.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from swizzle_sim.language.grid import Grid
from swizzle_sim.workload.kernels import Kernel
from swizzle_sim.workload.launch import Array, Launch
from xcd_model import Trace, TraceBuilder
from xcd_model.errors import SizeError

from .base import check_block, check_dot_block, check_items, check_traceable, lines_of, resources

NAME = "conv_2d"
NUM_WARPS = 8
NUM_STAGES = 2
COMPILED = {((8, 16, 128, 64), NUM_WARPS): (118, 32 * 1024)}  # (tile, waves): (VGPRs, LDS bytes)
TRITON = Path(__file__).with_name(f"{NAME}_triton.py")

SHARING = """\
Workgroup (m, n) computes BLOCK_K output channels, block n, of patch m: BLOCK_H x BLOCK_W pixels of one image, patches
row by row, image after image. It reads that patch of X once for each of the R x S filter positions, shifted and clipped
at the border, BLOCK_C channels a step, and as many slices of channel block n of the weights; it writes its part of Y
once. All patches share the weights of a channel block; all channel blocks share the patch; patches side by side or
above each other share a border of (S - 1) or (R - 1) pixels; images share nothing but the weights."""


def conv_2d(
    *,
    N: int = 2,
    H: int = 128,
    W: int = 128,
    C: int = 512,
    K: int = 512,
    R: int = 3,
    S: int = 3,
    BLOCK_H: int = 8,
    BLOCK_W: int = 16,
    BLOCK_K: int = 128,
    BLOCK_C: int = 64,
) -> Kernel:
    """Convolution in fp16 that keeps the image's size.

    Parameters
    ----------
    N, H, W, C, K : int
        Input is (N, H, W, C), output (N, H, W, K).
    R, S : int
        Filter; weights are (R, S, C, K). At most 15 each.
    BLOCK_H, BLOCK_W : int
        Patch of pixels; powers of two of which the product is 16 to 1024.
    BLOCK_K, BLOCK_C : int
        Output channels of a workgroup and input channels of a step; powers of two from 16 to 1024.

    Returns
    -------
    Kernel

    Raises
    ------
    SizeError
        If a block is no power of two in range, the filter is too large, or the problem is too large to trace.
    """
    problem = {"N": N, "H": H, "W": W, "C": C, "K": K, "R": R, "S": S}
    problem |= {"BLOCK_H": BLOCK_H, "BLOCK_W": BLOCK_W, "BLOCK_K": BLOCK_K, "BLOCK_C": BLOCK_C}
    _check(problem)
    tiles = tiles_of(problem)
    tile = (BLOCK_H, BLOCK_W, BLOCK_K, BLOCK_C)
    depth = R * S * (-(-C // BLOCK_C) * BLOCK_C)
    return Kernel(
        name=NAME,
        summary="2-D convolution, fp16, channels last, implicit GEMM",
        problem=problem,
        dtype="fp16",
        grid=Grid((tiles[0] * tiles[1],), tiles),
        flops=2.0 * N * H * W * K * R * S * C,
        issued_flops=2.0 * tiles[0] * BLOCK_H * BLOCK_W * tiles[1] * BLOCK_K * depth,
        resources=resources(COMPILED, tile, num_warps=NUM_WARPS, in_flight=2 * NUM_STAGES, loads_per_step=2),
        build_trace=lambda line_bytes: trace(problem, line_bytes),
        reference=lambda inputs: reference(inputs, problem),
        make_inputs=lambda seed: make_inputs(problem, seed),
        triton_source=TRITON.read_text(encoding="utf-8"),
        sharing=SHARING,
        sources=("cuDNN, arXiv 1410.0759 (implicit GEMM)", "latent diffusion, arXiv 2112.10752 (sizes)"),
        at_grids=lambda: _at_grids(problem),
        make_launch=lambda: launch(problem),
    )


def _patches(problem: Mapping[str, int]) -> tuple[int, int]:
    """Patches of an image: down, across."""
    return -(-problem["H"] // problem["BLOCK_H"]), -(-problem["W"] // problem["BLOCK_W"])


def tiles_of(problem: Mapping[str, int]) -> tuple[int, int]:
    """Patches of all images, and channel blocks."""
    high, wide = _patches(problem)
    return problem["N"] * high * wide, -(-problem["K"] // problem["BLOCK_K"])


def _check(problem: Mapping[str, int]) -> None:
    check_block(NAME, BLOCK_H=problem["BLOCK_H"], BLOCK_W=problem["BLOCK_W"], most=1024)
    pixels = problem["BLOCK_H"] * problem["BLOCK_W"]
    if not 16 <= pixels <= 1024:
        raise SizeError(f"{NAME}: BLOCK_H * BLOCK_W = {pixels}: a patch has 16 to 1024 pixels, as tl.dot needs")
    check_dot_block(NAME, BLOCK_K=problem["BLOCK_K"], BLOCK_C=problem["BLOCK_C"])
    for name in ("R", "S"):
        if problem[name] > 15:
            raise SizeError(f"{NAME}: {name} = {problem[name]}: a filter side is at most 15")
    r, s, c, k = (problem[name] for name in ("R", "S", "C", "K"))
    check_items(NAME, "an image or the weights", max(problem["H"] * problem["W"] * max(c, k), r * s * c * k))
    tiles = tiles_of(problem)
    steps = tiles[0] * tiles[1] * r * s * -(-c // problem["BLOCK_C"])
    lines = lines_of(pixels, problem["BLOCK_C"]) + lines_of(problem["BLOCK_C"], problem["BLOCK_K"])
    check_traceable(NAME, workgroups=tiles[0] * tiles[1], instructions=2.0 * steps, touches=steps * lines)


def launch(problem: Mapping[str, int]) -> Launch:
    """Launch of the Triton kernel at one size."""
    n, h, w, c, k, r, s = (problem[name] for name in ("N", "H", "W", "C", "K", "R", "S"))
    tiles = tiles_of(problem)
    return Launch(
        path=TRITON,
        function=NAME,
        arguments={
            "x_ptr": Array(shape=(n, h, w, c), dtype="fp16"),
            "w_ptr": Array(shape=(r, s, c, k), dtype="fp16"),
            "y_ptr": Array(shape=(n, h, w, k), dtype="fp16", role="out"),
            **{"H": h, "W": w, "C": c, "K": k},
        },
        constexprs={name: problem[name] for name in ("R", "S", "BLOCK_H", "BLOCK_W", "BLOCK_K", "BLOCK_C")},
        grid=(tiles[0] * tiles[1],),
        num_warps=NUM_WARPS,
        num_stages=NUM_STAGES,
        make_inputs=lambda seed: {f"{name}_ptr": values for name, values in make_inputs(problem, seed).items()},
    )


def trace(problem: Mapping[str, int], line_bytes: int) -> Trace:
    """Access model: per filter position and channel slice one load of X, one of the weights; one store of Y."""
    n, h, w, c, k, r, s = (problem[name] for name in ("N", "H", "W", "C", "K", "R", "S"))
    block_h, block_w, block_k, block_c = (problem[f"BLOCK_{axis}"] for axis in "HWKC")
    patches, num_pid_k = tiles_of(problem)
    high, wide = _patches(problem)
    patch, pid_k = np.divmod(np.arange(patches * num_pid_k, dtype=np.int64), num_pid_k)
    image, row, col = patch // (high * wide), patch // wide % high * block_h, patch % wide * block_w
    build = TraceBuilder(n_workgroups=patch.size, line_bytes=line_bytes)
    x = build.place("X", shape=(n, h, w, c), item_bytes=2)
    weights = build.place("W", shape=(r * s, c, k), item_bytes=2)
    y = build.place("Y", shape=(n, h, w, k), item_bytes=2)
    start = np.arange(0, c, block_c)
    down, right, depth = (axis.reshape(1, -1) for axis in np.meshgrid(np.arange(r), np.arange(s), start, indexing="ij"))
    at = (image[:, None], row[:, None] + down - (r - 1) // 2, col[:, None] + right - (s - 1) // 2, depth)
    build.step(
        build.read_box(x, at=at, size=(1, block_h, block_w, block_c)),
        build.read_box(weights, at=(down * s + right, depth, pid_k[:, None] * block_k), size=(1, block_c, block_k)),
    )
    build.step(build.write_box(y, at=(image, row, col, pid_k * block_k), size=(1, block_h, block_w, block_k)))
    return build.trace()


def make_inputs(problem: Mapping[str, int], seed: int) -> dict[str, np.ndarray]:
    """Random fp16 input and weights of unit scale."""
    draw = np.random.default_rng(seed)
    n, h, w, c, k, r, s = (problem[name] for name in ("N", "H", "W", "C", "K", "R", "S"))
    shapes = {"x": (n, h, w, c), "w": (r, s, c, k)}
    return {name: draw.standard_normal(shape, np.float32).astype(np.float16) for name, shape in shapes.items()}


def reference(inputs: Mapping[str, np.ndarray], problem: Mapping[str, int]) -> dict[str, np.ndarray]:
    """Y in fp16, accumulated in fp32, one filter position after the other."""
    x, weights = inputs["x"].astype(np.float32), inputs["w"].astype(np.float32)
    r, s, (h, w) = problem["R"], problem["S"], x.shape[1:3]
    above, left = (r - 1) // 2, (s - 1) // 2
    padded = np.pad(x, ((0, 0), (above, r - 1 - above), (left, s - 1 - left), (0, 0)))
    total = sum(padded[:, i : i + h, j : j + w] @ weights[i, j] for i in range(r) for j in range(s))
    return {"y": np.asarray(total).astype(np.float16)}


def _at_grids(problem: Mapping[str, int]) -> Iterable[tuple[Grid, Mapping[str, int]]]:
    """Other images and channel counts: few and many patches, prime, each exact and ragged."""
    shapes = [(1, 1, 1, 1), (1, 1, 5, 2), (2, 2, 2, 1), (3, 4, 4, 4), (1, 8, 8, 8), (7, 3, 5, 3), (1, 16, 16, 2)]
    for n, high, wide, blocks in shapes:
        for cut in (0, 1):
            h, w = max(1, high * problem["BLOCK_H"] - cut), max(1, wide * problem["BLOCK_W"] - cut)
            sizes = {**problem, "N": n, "H": h, "W": w, "K": blocks * problem["BLOCK_K"] - cut}
            tiles = tiles_of(sizes)
            yield Grid((tiles[0] * tiles[1],), tiles), sizes
