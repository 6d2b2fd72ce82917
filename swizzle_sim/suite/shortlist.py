"""Which families to try first on a kernel, when there is no time for all: one of each kind, then their neighbours."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from swizzle_sim.candidates import Candidate, family_candidates, family_specs
from swizzle_sim.kernels import Kernel
from swizzle_sim.swizzle import FAMILIES, parse_spec
from xcd_model import Gpu

# Kinds that lead on some published kernel; the others follow in the order of `family_specs`.
FIRST = (
    *("contiguous", "column_panels", "row_panels", "contiguous+column", "contiguous+group_m", "contiguous+group_n"),
    *("head_first_swizzled", "chunked", "group_m", "group_n", "column", "contiguous+row", "contiguous+hilbert"),
    *("contiguous+blocks", "chunked+group_m", "chunked+group_n", "row_bands", "boxes", "contiguous+boxes"),
)


def shortlist(kernel: Kernel, gpu: Gpu) -> Iterator[Candidate]:
    """Every candidate of the families, most worth trying first.

    Round by round one of each kind (its spec without parameters), nearest the published parameters first, so that
    whatever is cut off at the end has relatives among what was tried.

    Parameters
    ----------
    kernel : Kernel
    gpu : Gpu

    Yields
    ------
    candidate : Candidate
    """
    kinds: dict[str, list[str]] = {kind: [] for kind in FIRST}
    for spec in family_specs(kernel, gpu):
        kinds.setdefault(re.sub(r"\([^()]*\)", "", spec), []).append(spec)
    for members in kinds.values():
        members.sort(key=_distance)
    for turn in range(max((len(members) for members in kinds.values()), default=0)):
        yield from family_candidates(kernel, gpu, [members[turn] for members in kinds.values() if turn < len(members)])


def _distance(spec: str) -> float:
    """How far parameters are from the families' defaults, in octaves."""
    return sum(
        abs(math.log2(value / FAMILIES[one.name].parameters[key].default))
        for one, params in parse_spec(spec)
        for key, value in params.items()
    )
