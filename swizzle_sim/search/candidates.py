"""The families proposer: published swizzles to try on a grid, with their parameters, and which of them first."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import product
from typing import Any

import numpy as np

from swizzle_sim.language import FAMILIES, Grid, Swizzle, family, holds, parse_spec
from swizzle_sim.pricing.replaying import TRENDS, WorkPerWorkgroup, work_per_workgroup
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.workload.kernels import Kernel
from xcd_model import Gpu
from xcd_model.errors import NotBijective

# Published window and chunk sizes lie between these steps; all divisors would repeat permutations.
WINDOWS = (2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20, 24, 32, 48, 64)
PANELS = (1, 2, 4, 8, 16, 32, 64)
BOX_SIDES = (1, 4, 16)  # of boxes in three dimensions, in addition to the whole side
BANDS = (1, 4, 16)  # rows of a band in a two-level order, in addition to the whole block
OF_XCDS = ("contiguous", "chunked", "row_bands")  # say which XCD gets which ids, and leave all where they are on one
LONGEST = 65536  # of a family's parameter
# Kinds that lead on some published kernel; the others follow in the order of `family_specs`.
FIRST = (
    *("contiguous", "column_panels", "row_panels", "contiguous+column", "contiguous+group_m", "contiguous+group_n"),
    *("head_first_swizzled", "chunked", "group_m", "group_n", "column", "contiguous+row", "contiguous+hilbert"),
    *("contiguous+blocks", "chunked+group_m", "chunked+group_n", "row_bands", "boxes", "contiguous+boxes"),
)


@dataclass(frozen=True)
class Candidate:
    """What a strategy proposes: a text of the closed language, or the specification of a family.

    ``told`` joins its verdict, such as a template and its parameters, and ``note`` its critique. ``order`` is a
    permutation in place of a text, ``sure`` says that no screen may drop it, ``refusal`` the code and the reason of
    what is no candidate.
    """

    name: str
    source: str
    proposer: str
    told: Mapping[str, Any] = field(default_factory=dict, compare=False)
    note: str = ""
    order: np.ndarray | None = field(default=None, compare=False)
    sure: bool = False
    refusal: tuple[str, str] | None = None

    @property
    def swizzle(self) -> Swizzle:
        """The text, parsed; raises `LanguageError` where it is outside the language."""
        return Swizzle.parse(self.source, name=self.name)


LAUNCH_ORDER = Candidate("identity", family("identity"), "baseline", sure=True)


def placements(num_pids: int, gpu: Gpu) -> list[str]:
    """Specifications that decide which XCD gets which run of ids; the empty one is the hardware's round robin."""
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


def xcd_orders(tiles: tuple[int, int], num_xcds: int) -> list[str]:
    """Specifications of orders that deal tiles to XCDs themselves: attention's, panels, one block an XCD."""
    rows, cols = tiles
    found = ["head_first_swizzled", "block_first_swizzled"]
    found += [f"head_groups(size={w})" for w in PANELS if 1 < w <= cols]
    found += [f"column_panels(width={w})" for w in PANELS if w <= cols]
    found += [f"row_panels(height={w})" for w in PANELS if w <= rows]
    for across in (n for n in range(1, num_xcds + 1) if num_xcds % n == 0):
        high, wide = min(-(-rows * across // num_xcds), LONGEST), min(-(-cols // across), LONGEST)
        block = f"rows={high}, cols={wide}"
        found += [f"contiguous+blocks({block}, size={size})" for size in (*(n for n in BANDS if n < high), high)]
        found.append(f"contiguous+morton_blocks({block})")
    return found


def box_orders(grid: Grid) -> list[str]:
    """Specifications of orders of a three-dimensional launch."""
    sides = [[n for n in BOX_SIDES if n < side] + [min(side, LONGEST)] for side in grid.launch]
    return ["morton_3d", *(f"boxes(x={x}, y={y}, z={z})" for x, y, z in product(*sides))]


def work_of(kernel: Kernel, gpu: Gpu) -> WorkPerWorkgroup:
    """Spread of a kernel's work over its workgroups."""
    return work_per_workgroup(kernel.build_trace(gpu.l2.line_bytes), kernel.grid.axes)


def balancing_orders(grid: Grid, work: WorkPerWorkgroup) -> list[str]:
    """Specifications of orders that begin with the longest workgroups, or put a light one after each heavy one.

    None where the work is even, nor of those that begin with the longest where the launch order does: there the work
    falls along its axis.
    """
    if not work.uneven:
        return []
    falls = work.axis != "" and work.trend <= -TRENDS
    if grid.shape is None or work.axis != "pid_m":
        backwards = ["reverse", "contiguous+reverse"]
        if grid.shape:  # rows and columns change places: bands of rows, column by column, from the last column
            backwards += [f"{placing}reverse+group_m(size={w})" for placing in ("", "contiguous+") for w in PANELS]
        return [] if falls else backwards
    widths = sorted({w for w in PANELS if w < grid.shape[1]} | {min(grid.shape[1], LONGEST)})
    kinds = ("paired",) if falls else ("longest_first", "paired")
    return [f"{placing}{kind}(size={w})" for kind in kinds for placing in ("", "contiguous+") for w in widths]


def family_specs(kernel: Kernel, gpu: Gpu) -> Iterator[str]:
    """Every combination of placement and order, single families first, then by placement; then XCD orders.

    Where the work of the workgroups is uneven, orders that balance it follow. Of a GPU of one XCD without what only
    says which XCD gets which ids, each once. All are bijections of the kernel's grid, with parameters in their ranges.
    """
    found = _specs(kernel, gpu)
    if gpu.xcds == 1:
        kept = ([part for part in spec.split("+") if part.partition("(")[0] not in OF_XCDS] for spec in found)
        found = iter(dict.fromkeys("+".join(parts) for parts in kept if parts))
    yield from found


def _specs(kernel: Kernel, gpu: Gpu) -> Iterator[str]:
    grid = kernel.grid
    for placement in placements(grid.num_pids, gpu):
        for order in orders(grid.shape):
            if spec := "+".join(part for part in (placement, order) if part):
                yield spec
    more: list[str] = []
    if len(grid.launch) == 3:
        some = ("", "contiguous+", f"chunked(chunk={gpu.cus_per_xcd})+", "chunked(chunk=256)+")
        more = [placement + order for placement in some for order in box_orders(grid)]
    elif grid.shape:
        more = xcd_orders(grid.shape, gpu.xcds)
    else:
        more = [f"row_bands(rows={w})" for w in PANELS if grid.num_pids % (w * gpu.xcds)]
    more += balancing_orders(grid, work_of(kernel, gpu))
    yield from (spec for spec in more if holds(spec, grid, gpu.xcds))


def has_families(kernel: Kernel, gpu: Gpu) -> bool:
    """Whether there is one: on one XCD not of a line of workgroups whose work is even, or falls along it."""
    return next(family_specs(kernel, gpu), None) is not None


def family_candidates(kernel: Kernel, gpu: Gpu, specs: Iterable[str] | None = None) -> list[Candidate]:
    """Texts of family specifications, by default of all that `family_specs` proposes."""
    chosen = family_specs(kernel, gpu) if specs is None else specs
    return [Candidate(spec, family(spec), "families") for spec in chosen]


def shortlist(kernel: Kernel, gpu: Gpu) -> Iterator[Candidate]:
    """Every candidate of the families, most worth trying first.

    Round by round one of each kind (its spec without parameters), nearest the published parameters first, so that
    whatever is cut off at the end has relatives among what was tried.
    """
    kinds: dict[str, list[str]] = {kind: [] for kind in FIRST}
    for spec in family_specs(kernel, gpu):
        kinds.setdefault(re.sub(r"\([^()]*\)", "", spec), []).append(spec)
    for members in kinds.values():
        members.sort(key=_distance)
    for turn in range(max((len(members) for members in kinds.values()), default=0)):
        yield from family_candidates(kernel, gpu, [members[turn] for members in kinds.values() if turn < len(members)])


def permutation_digest(*orders: np.ndarray) -> bytes:
    """Hash of permutations, by which a search recognizes duplicates."""
    found = blake2b(digest_size=16)
    for order in orders:
        found.update(order.tobytes())
    return found.digest()


def distinct_shortlist(scorer: Scorer) -> Iterator[tuple[Candidate, np.ndarray]]:
    """Candidates of the shortlist with their permutations of the grid, none like another or the launch order."""
    seen = {permutation_digest(np.arange(scorer.kernel.grid.num_pids))}
    for candidate in shortlist(scorer.kernel, scorer.gpu):
        try:
            order = scorer.permutation(candidate.swizzle)
        except NotBijective:  # of this grid: such as a form that needs a multiple of the XCDs
            continue
        if (digest := permutation_digest(order)) not in seen:
            seen.add(digest)
            yield candidate, order


def _distance(spec: str) -> float:
    """How far parameters are from the families' defaults, in octaves."""
    return sum(
        abs(math.log2(value / FAMILIES[one.name].parameters[key].default))
        for one, params in parse_spec(spec)
        for key, value in params.items()
    )
