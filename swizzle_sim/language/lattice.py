"""The lattice of other grids on which a candidate is tried, and the condition that its trials support.

The condition is the weakest one, of a list, that covers no failing trial.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from swizzle_sim.language.grid import Grid
from swizzle_sim.language.ir import Form, literals
from swizzle_sim.language.rules import MOST_TRIED
from swizzle_sim.language.verdict import (
    EVERY_GRID,
    EVERY_GRID_TRIED,
    NOWHERE,
    REFUTED,
    TESTED,
    THIS_GRID_ONLY,
    UNNAMED,
    Verdict,
)

# Kinds of launches, of which a verdict speaks of one.
KINDS = {"line": "of one axis", "tiles": "of one axis in tiles", "plane": "of two axes", "box": "of three axes"}
XCD_COUNTS = (1, 2, 3, 4, 6, 8)
_UNCONDITIONAL = frozenset({EVERY_GRID, EVERY_GRID_TRIED, "everywhere"})  # the last: in histories of before 0.3

# One workgroup, fewer than XCDs, primes, one off a multiple, multiples of 8 and 64, powers of two.
_LINES = (1, 2, 3, 5, 7, 8, 12, 16, 24, 31, 36, 48, 63, 64, 65, 72, 96, 97, 100, 120, 128, 144, 192, 216, 256, 257, 288)
# Skinny both ways, square and not, non-divisible, prime.
_PLANES = (
    *((1, 1), (1, 7), (7, 1), (1, 16), (16, 1), (2, 2), (2, 3), (3, 2), (3, 5), (5, 3), (4, 4), (4, 8), (8, 4)),
    *((6, 6), (7, 11), (8, 8), (8, 9), (9, 8), (12, 12), (13, 13), (8, 16), (16, 8), (16, 16), (24, 8), (8, 24)),
    *((5, 16), (16, 5), (32, 4), (4, 32), (17, 16), (16, 17)),
)
_BOXES = (
    *((1, 1, 1), (1, 1, 7), (1, 7, 1), (7, 1, 1), (2, 2, 2), (2, 3, 5), (5, 3, 2), (4, 4, 4), (3, 3, 3)),
    *((8, 2, 2), (2, 8, 2), (2, 2, 8), (8, 8, 2), (8, 8, 8), (4, 8, 6), (7, 5, 3), (6, 4, 4), (16, 4, 1), (1, 8, 16)),
)
_LEAST_POINTS = 3  # a condition that fewer trials satisfy is an accident
_MOST_LITERALS = 5
_EVEN_BITS = 0x55555555  # of which a power of four has one


def lattice_like(grid: Grid) -> tuple[Grid, ...]:
    """Small grids of the same kind as ``grid``: as many axes, tiles where it has tiles."""
    return _grids(len(grid.launch), grid.tiles is not None)


@cache
def _grids(n_axes: int, tiled: bool) -> tuple[Grid, ...]:
    if tiled:
        return tuple(Grid((m * n,), (m, n)) for m, n in _PLANES)
    if n_axes == 1:
        return tuple(Grid((n,)) for n in _LINES)
    return tuple(Grid(sides) for sides in (_PLANES if n_axes == 2 else _BOXES))


@dataclass(frozen=True)
class Trial:
    """One grid, one XCD count, and whether the candidate was a permutation there."""

    grid: Grid
    num_xcds: int
    passed: bool


def name_domain(trials: list[Trial], form: Form, complete: bool = True) -> str:
    """Name the domain of a candidate."""
    passed = np.array([trial.passed for trial in trials])
    if not complete:
        return THIS_GRID_ONLY if passed[0] else UNNAMED if passed.any() else NOWHERE
    if passed.all():  # one grid, whatever the XCD counts, is no evidence for others
        return EVERY_GRID_TRIED if len({trial.grid for trial in trials}) > 1 else THIS_GRID_ONLY
    if not passed.any():
        return NOWHERE
    texts, mby_xcds = _conditions(trials, form)
    found = _weakest(texts, mby_xcds, passed)
    if found:
        return found
    return THIS_GRID_ONLY if passed[0] else UNNAMED


def _weakest(texts: list[str], mby_xcds: np.ndarray, passed: np.ndarray) -> str:
    """Return the condition, or pair of them, that covers most passing trials and no failing one; first of equals."""
    good = mby_xcds[:, passed].astype(np.int32)
    bad = mby_xcds[:, ~passed].astype(np.int32)
    covers = good @ good.T  # [i, j]: trials where i and j both hold; the diagonal is one condition alone
    covers[(bad @ bad.T) > 0] = 0
    if passed[0]:  # the domain must include the target grid
        covers[~np.outer(mby_xcds[:, 0], mby_xcds[:, 0])] = 0
    alone = np.diag(covers)
    best = int(covers.max())
    if best < _LEAST_POINTS:
        return ""
    if alone.max() == best:
        return texts[int(np.argmax(alone))]
    i, j = np.unravel_index(int(np.argmax(covers)), covers.shape)
    return f"{texts[i]} and {texts[j]}"


def _conditions(trials: list[Trial], form: Form) -> tuple[list[str], np.ndarray]:
    """Texts of all conditions, and the (n_conditions, n_trials) mask of trials where each holds."""
    xcds = np.array([trial.num_xcds for trial in trials])
    sides = _sides(trials, form)
    rows: dict[str, np.ndarray] = {}
    by_xcds = form.reads_num_xcds
    divisors = {"num_xcds": xcds, "(num_xcds * num_xcds)": xcds * xcds} if by_xcds else {}
    divisors |= {str(value): np.full_like(xcds, value) for value in _literals(form)}
    for divisor, below in divisors.items():
        rows |= {f"{name} % {divisor} == 0": side % below == 0 for name, side in sides.items()}
    for divisor, below in divisors.items():
        rows |= {f"{name} >= {divisor}": side >= below for name, side in sides.items()}
        rows |= {f"{name} <= {divisor}": side <= below for name, side in sides.items()}
    if by_xcds:
        rows[f"num_xcds == {xcds[0]}"] = xcds == xcds[0]
        rows[_power("num_xcds")] = _is_power(xcds)
    rows |= {_power(name): _is_power(side) for name, side in sides.items()}
    pids = sides["num_pids"]  # the next is required by bit-pair swaps
    rows[f"{_power('num_pids')} and num_pids & {_EVEN_BITS} != 0"] = _is_power(pids) & ((pids & _EVEN_BITS) != 0)
    names = [name for name in sides if name != "num_pids"]
    if len(names) == 2:
        rows[" == ".join(names)] = sides[names[0]] == sides[names[1]]
    return list(rows), np.array(list(rows.values()))


def _power(name: str) -> str:
    """Condition of the language that a count is a power of two."""
    return f"{name} & ({name} - 1) == 0"


def _sides(trials: list[Trial], form: Form) -> dict[str, np.ndarray]:
    """Extents of a grid by name, spelled as the candidate spells its coordinates."""
    axes = [trial.grid.coordinates for trial in trials]
    spelled = ("pid_x", "pid_y", "pid_z") if "pid_m" not in axes[0] or "x" in form.results[0] else ("pid_m", "pid_n")
    names = ["pid", *(name for name in spelled if all(name in axis for axis in axes))]
    if len(names) == 2:  # one axis: its extent is num_pids
        names.pop()
    return {
        f"num_{name}s" if name == "pid" else f"num_{name}": np.array([axis[name].extent for axis in axes], np.int64)
        for name in names
    }


def _is_power(values: np.ndarray) -> np.ndarray:
    return (values & (values - 1)) == 0


def _literals(form: Form) -> list[int]:
    """Return the literals that may be a group size or a count of XCDs, in text order."""
    found: dict[int, None] = {}
    for value in literals(form.body):
        if 2 <= value <= 1024:
            found[value] = None
        if 1 <= value < 1024 and value & (value + 1) == 0:
            found[value + 1] = None  # a mask of low bits: the relevant size is one more
    return list(found)[:_MOST_LITERALS]


def unconditional(domain: str) -> bool:
    """Whether a domain names no condition: no grid is known on which the candidate fails."""
    return domain in _UNCONDITIONAL


def named(domain: str) -> bool:
    """Whether a domain is a condition."""
    return not unconditional(domain) and domain not in (THIS_GRID_ONLY, NOWHERE, UNNAMED)


def claim(status: str, domain: str, tested: int, largest: int, covers: str = "", of: str = "") -> str:
    """What is known of a candidate, for people: the word, the domain and the launches, and on what it rests."""
    if status == REFUTED:
        words = {NOWHERE: "right nowhere", UNNAMED: "right on some launches, under no simple condition"}
        right = words.get(domain, f"{'proved' if covers else 'right'} where {domain}")
        return f"{right}, of launches {of}" if of else right
    where = f"where {domain}" if named(domain) and not domain.startswith(EVERY_GRID) else domain
    if of:
        where = (
            f"every launch {of}{domain.removeprefix(EVERY_GRID)}" if domain.startswith(EVERY_GRID) else f"{where}, {of}"
        )
    if of and domain == EVERY_GRID_TRIED:
        where = f"{domain}, {of}"
    if status != TESTED:
        return f"{status}: {where}" + (f", {covers}" if covers else "")
    launches = f"{tested} launch{'es' * (tested != 1)}"
    launches += f", the largest of {largest} workgroup{'s' * (largest != 1)}"
    return f"tested: {where} ({launches}{', of which a sample' * (largest > MOST_TRIED)}); not proved"


def claim_of(verdict: Verdict, grid: Grid | None = None) -> str:
    """What is known of all launches of a grid's kind, in one of the three words."""
    of = KINDS[kind_of_grid(grid)] if grid is not None else ""
    return claim(verdict.status, verdict.domain, verdict.tested, verdict.largest, verdict.covers, of)


def kind_of_grid(grid: Grid) -> str:
    """Kind of a launch: ``line``, ``tiles``, ``plane`` or ``box``."""
    return ("tiles" if grid.tiles else "line", "plane", "box")[len(grid.launch) - 1]
