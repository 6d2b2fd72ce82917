"""The families proposer: which published swizzles are worth trying on a grid, with which parameters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from swizzle_sim.kernels import Kernel
from swizzle_sim.swizzle import family
from xcd_model.gpu import Gpu

# Window and chunk sizes people publish lie between these steps; all divisors would repeat permutations.
WINDOWS = (2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20, 24, 32, 48, 64)


@dataclass(frozen=True)
class Candidate:
    """A text to try.

    Parameters
    ----------
    name : str
        Family specification, or what the proposer calls it.
    source : str
        Text in the closed language.
    proposer : str
    """

    name: str
    source: str
    proposer: str


def placements(num_pids: int, gpu: Gpu) -> list[str]:
    """Specifications that decide which XCD gets which run of ids; the empty one leaves the round robin as it is."""
    share = num_pids // gpu.xcds
    chunks = sorted({2**k for k in range(1, 15)} | {k * k for k in (3, 5, 6, 7, 12)} | {gpu.cus_per_xcd})
    return ["", "contiguous", *(f"chunked(chunk={c})" for c in chunks if c <= share)]


def orders(tiles: tuple[int, int] | None) -> list[str]:
    """Specifications that decide how ids walk over the tiles; only the empty one where there are no tile axes."""
    if tiles is None:
        return [""]
    rows, cols = tiles
    grouped = [f"group_m(size={w})" for w in WINDOWS if w <= rows]
    grouped += [f"group_n(size={w})" for w in WINDOWS if w <= cols]
    return ["row", "column", "snake", "morton", "hilbert", *grouped]


def family_specs(kernel: Kernel, gpu: Gpu) -> Iterator[str]:
    """Every combination of placement and order, the one-family ones first, then by placement."""
    for placement in placements(kernel.grid.num_pids, gpu):
        for order in orders(kernel.grid.shape):
            if spec := "+".join(part for part in (placement, order) if part):
                yield spec


def family_candidates(kernel: Kernel, gpu: Gpu, specs: Iterable[str] | None = None) -> list[Candidate]:
    """Texts of family specifications, by default of all that `family_specs` proposes."""
    chosen = family_specs(kernel, gpu) if specs is None else specs
    return [Candidate(spec, family(spec), "families") for spec in chosen]
