"""Black-Scholes: one explicit step in time of the equation, each value from itself and its two neighbours.

Sources: SwizzlePerf (arXiv 2508.20258); measured there on 2**28 items in fp32.
"""

import numpy as np

from .declared import LINE_BYTES, Declared, Tensor

STRIKE, RATE, VOLATILITY = 100.0, 0.05, 0.2
SPACING, STEP = 0.5, 1e-4  # of the grid of spots, and in time [years]
DIFFUSION, DRIFT = VOLATILITY**2 / (2 * SPACING**2), RATE / (2 * SPACING)


def access(s, build, pid, spot, value, price) -> None:
    """Loads of s and of v one down, in place and one up; a store of the new values."""
    first, size = pid[0] * s.BLOCK_SIZE, (s.BLOCK_SIZE,)
    build.step(
        build.read_box(spot, at=(first,), size=size),
        *(build.read_box(value, at=(first + shift,), size=size) for shift in (-1, 0, 1)),
        build.write_box(price, at=(first,), size=size),
    )


def reference(s, spot, value) -> np.ndarray:
    """Values, computed in fp64; the first and the last have themselves for a neighbour."""
    spot, here = spot.astype(np.float64), value.astype(np.float64)
    padded = np.pad(here, 1, mode="edge")
    before, after = padded[:-2], padded[2:]
    gain = DIFFUSION * spot**2 * (after - 2 * here + before) + DRIFT * spot * (after - before) - RATE * here
    return here + STEP * gain


black_scholes = Declared(
    name="black_scholes",
    summary="one explicit step of the Black-Scholes equation, fp32, one block of a grid of spots a workgroup",
    sharing="""\
Workgroup i reads BLOCK_SIZE spots and values, the values three times, shifted by one item down and up, and writes as
many new values. The shifted loads hit what the workgroup has just read; across its borders a workgroup shares one
item, and so one line, with each neighbour. Everything else is a stream.""",
    sources=("arXiv 2508.20258", "Black and Scholes, Journal of Political Economy 81(3), 1973"),
    sizes={"n_assets": 1 << 28, "BLOCK_SIZE": 1024},
    derived={"diffusion": DIFFUSION, "drift": DRIFT, "rate": RATE, "step": STEP},
    grid="n_assets/BLOCK_SIZE",
    tensors={
        # spots around the strike, values of a tenth of it and less
        "s": Tensor("n_assets", "fp32", draw=lambda draw, shape: draw.uniform(0.5 * STRIKE, 1.5 * STRIKE, shape)),
        "v": Tensor("n_assets", "fp32", draw=lambda draw, shape: draw.uniform(0.0, 0.1 * STRIKE, shape)),
        "price": Tensor("n_assets", "fp32", role="out"),
    },
    arguments="n_assets diffusion drift rate step",
    access=access,
    reference=reference,
    flops=lambda s: 14 * s.n_assets,  # as written in the Triton source
    dtype="fp32",
    blocks={"BLOCK_SIZE": (1, 1 << 16)},
    work=lambda s: (5, 5 * (2 + s.BLOCK_SIZE * 4 / LINE_BYTES)),
    compiled={((1024,), 4): (32, 0, 888), ((4096,), 4): (64, 0, 2536)},
    in_flight=4,
)
