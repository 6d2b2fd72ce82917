"""Two-dimensional convolution, channels last, stride 1, zeros around: implicit GEMM, a patch of pixels a workgroup.

The default is a 3 x 3 layer of 512 channels on 128 x 128 pixels, as in the decoder of latent diffusion (arXiv
2112.10752), for 2 images: 4.5 MiB of weights, more than one L2, and 32 MiB of input.
"""

import numpy as np

from .declared import DOT, Declared, Tensor, cdiv, lines_of


def access(s, build, pid, x, w, y) -> None:
    """Per filter position and channel slice one load of X, one of the weights; one store of Y."""
    patch, channel = pid[0], pid[1] * s.BLOCK_K
    image, row, col = patch // (s.high * s.wide), patch // s.wide % s.high * s.BLOCK_H, patch % s.wide * s.BLOCK_W
    axes = np.meshgrid(np.arange(s.R), np.arange(s.S), np.arange(0, s.C, s.BLOCK_C), indexing="ij")
    down, right, depth = (axis.reshape(1, -1) for axis in axes)
    at = (image[:, None], row[:, None] + down - (s.R - 1) // 2, col[:, None] + right - (s.S - 1) // 2, depth)
    build.step(
        build.read_box(x, at=at, size=(1, s.BLOCK_H, s.BLOCK_W, s.BLOCK_C)),
        build.read_box(w, at=(down, right, depth, channel[:, None]), size=(1, 1, s.BLOCK_C, s.BLOCK_K)),
    )
    build.step(build.write_box(y, at=(image, row, col, channel), size=(1, s.BLOCK_H, s.BLOCK_W, s.BLOCK_K)))


def reference(s, x, w) -> np.ndarray:
    """Y, accumulated in fp32, one filter position after the other."""
    x, w, above, left = x.astype(np.float32), w.astype(np.float32), (s.R - 1) // 2, (s.S - 1) // 2
    padded = np.pad(x, ((0, 0), (above, s.R - 1 - above), (left, s.S - 1 - left), (0, 0)))
    return sum(padded[:, i : i + s.H, j : j + s.W] @ w[i, j] for i in range(s.R) for j in range(s.S))


conv_2d = Declared(
    name="conv_2d",
    summary="2-D convolution, fp16, channels last, implicit GEMM",
    sharing="""\
Workgroup (m, n) computes BLOCK_K output channels, block n, of patch m: BLOCK_H x BLOCK_W pixels of one image, patches
row by row, image after image. It reads that patch of X once for each of the R x S filter positions, shifted and clipped
at the border, BLOCK_C channels a step, and as many slices of channel block n of the weights; it writes its part of Y
once. All patches share the weights of a channel block; all channel blocks share the patch; patches side by side or
above each other share a border of (S - 1) or (R - 1) pixels; images share nothing but the weights.""",
    sources=("cuDNN, arXiv 1410.0759 (implicit GEMM)", "latent diffusion, arXiv 2112.10752 (sizes)"),
    # images of H x W pixels and C channels in, K channels out, filters of R x S pixels
    sizes={"N": 2, "H": 128, "W": 128, "C": 512, "K": 512, "R": 3, "S": 3}
    | {"BLOCK_H": 8, "BLOCK_W": 16, "BLOCK_K": 128, "BLOCK_C": 64},
    derived={"high": lambda s: cdiv(s.H, s.BLOCK_H), "wide": lambda s: cdiv(s.W, s.BLOCK_W)}  # patches of an image
    | {"pixels": lambda s: s.BLOCK_H * s.BLOCK_W, "trips": lambda s: s.R * s.S * cdiv(s.C, s.BLOCK_C)},
    grid="N*high*wide K/BLOCK_K",
    flat=True,
    # few and many patches, prime
    others=lambda s: (
        {"N": n, "H": max(1, high * s.BLOCK_H - cut), "W": max(1, wide * s.BLOCK_W - cut), "K": k * s.BLOCK_K - cut}
        for n, high, wide, k in (
            *((1, 1, 1, 1), (1, 1, 5, 2), (2, 2, 2, 1), (3, 4, 4, 4), (1, 8, 8, 8), (7, 3, 5, 3), (1, 16, 16, 2)),
        )
        for cut in (0, 1)
    ),
    tensors={"X": Tensor("N H W C"), "W": Tensor("R S C K"), "Y": Tensor("N H W K", role="out")},
    arguments="H W C K",
    constexprs="R S BLOCK_H BLOCK_W BLOCK_K BLOCK_C",
    access=access,
    reference=reference,
    flops=lambda s: 2.0 * s.N * s.H * s.W * s.K * s.R * s.S * s.C,
    padded="H/BLOCK_H W/BLOCK_W C/BLOCK_C",
    blocks={"BLOCK_H BLOCK_W": (1, 1024), "BLOCK_K BLOCK_C": DOT},
    rules={
        "BLOCK_H * BLOCK_W = {s.pixels}: a patch has 16 to 1024 pixels, as tl.dot needs": lambda s: (
            16 <= s.pixels <= 1024
        ),
        "R = {s.R}: a filter side is at most 15": lambda s: s.R <= 15,
        "S = {s.S}: a filter side is at most 15": lambda s: s.S <= 15,
    },
    items={"an image of X": "H W C", "an image of Y": "H W K", "W": "R S C K"},
    work=lambda s: (2 * s.trips, s.trips * (lines_of(s.pixels, s.BLOCK_C) + lines_of(s.BLOCK_C, s.BLOCK_K))),
    compiled={((8, 16, 128, 64), 8): (118, 32 * 1024)},
    num_warps=8,
    in_flight=4,
    loads_per_step=2,
)
