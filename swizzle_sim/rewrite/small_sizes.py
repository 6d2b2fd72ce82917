"""Sizes of a kernel small enough to interpret, grids that do not divide by the XCDs among them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from swizzle_sim.capture.workload import Workload
from swizzle_sim.language.grid import Grid
from xcd_model.errors import SwizzleSimError

MAX_PROGRAMS = 48
LAST_RESORT = 256  # of a kernel whose smallest grid is larger
_FIRST_LENGTH, _LEAST_LENGTH = 512, 48


def with_cheap_programs(work: Workload, blocks: bool = True, constants_too: bool = True) -> Workload:
    """Return the kernel with shorter programs on the same grid; with ``blocks``, smaller blocks and constants first."""
    constants = set(work.launch.constexprs)
    found = work
    if blocks:
        for name in sorted(set(work.problem) - constants):
            found = _shrunk(found, name, _FIRST_LENGTH)
        for name in sorted(set(work.problem) & constants) if constants_too else ():
            value = found.problem[name]
            for smaller in (2**k for k in range(4, value.bit_length() - 1) if value & (value - 1) == 0):
                other = _at(found, {**found.problem, name: smaller})
                if other is not None and _is_as_even(found, other):
                    found = other
                    break
    for name in sorted(set(work.problem) - constants):
        if not _changes_grid(found, name):
            found = _shrunk(found, name, _LEAST_LENGTH, same_grid=True)
    return found


def small_workloads(work: Workload, num_xcds: int, constants_too: bool = True) -> list[tuple[str, Workload]]:
    """Kinds and the kernel at small sizes of them: off a multiple of the XCDs, on one, fewer programs than XCDs.

    Of each kind up to two: the first may be ragged; the second keeps the sizes' divisibility by the kernel's
    constants, for a kernel that reads without masks: where none is known, with the lengths that leave the grid alone.
    """
    cheap = with_cheap_programs(work, constants_too=constants_too)
    known = [(grid, sizes) for grid, sizes in (*cheap.others, (cheap.grid, cheap.problem)) if sizes]
    fewest = min((grid.num_pids for grid, _ in known), default=0)
    most = fewest if MAX_PROGRAMS < fewest <= LAST_RESORT else MAX_PROGRAMS
    known = sorted((point for point in known if point[0].num_pids <= most), key=_most_programs_then_ragged)
    kinds = {
        kind: [point for point in known if _kind(point[0], num_xcds) == kind]
        for kind in ("off a multiple", "on a multiple", "few")
    }
    halved: list[Workload] | None = None
    if len(kinds["off a multiple"]) < 2:
        kinds["off a multiple"].extend(_off_multiple(cheap, num_xcds))
    lengths = {name: cheap.problem[name] for name in cheap.problem if not _changes_grid(cheap, name)}
    found = []
    for kind, points in kinds.items():
        built = next(filter(None, (_at(cheap, sizes) for _, sizes in points)), None)
        found += [(kind, built)] if built else []
        largest = sorted(points, key=lambda point: -math.prod(point[1].values()))  # none of their sizes cut down to 1
        tried = [*largest, *((grid, {**sizes, **lengths}) for grid, sizes in largest if lengths)]
        there = ((grid, _at(cheap, sizes)) for grid, sizes in tried)
        even = next((one for grid, one in there if one and one.grid == grid and _is_as_even(cheap, one)), None)
        if even is None:
            halved = list(_halved(cheap, most)) if halved is None else halved
            even = next((one for one in halved if _kind(one.grid, num_xcds) == kind), None)
        found += [(kind, even)] if even and (built is None or even.problem != built.problem) else []
    return found


def _kind(grid: Grid, num_xcds: int) -> str:
    """Kind of a grid by its number of programs."""
    if grid.num_pids <= num_xcds:
        return "few"
    return "off a multiple" if grid.num_pids % num_xcds else "on a multiple"


def _halved(work: Workload, most: int) -> Iterator[Workload]:
    """Halve one size after the other as long as their divisibility stays; yield where the grid is small enough."""
    one = work
    while True:
        before = one
        for name in sorted(work.problem):
            half = _at(one, {**one.problem, name: one.problem[name] // 2}) if one.problem[name] % 2 == 0 else None
            if half is not None and _is_as_even(work, half):
                one = half
                if one.grid.num_pids <= most:
                    yield one
        if one is before:
            return


def _is_as_even(work: Workload, other: Workload) -> bool:
    """Whether each constant of the kernel that divides a size here divides it there too.

    ``BLOCK_C`` and ``BC`` are of size C where there is one: that they divide another size says nothing.
    """
    for name, value in work.problem.items():
        for constant, block in work.launch.constexprs.items():
            if type(block) is not int or block < 2 or value % block:
                continue
            last = constant.upper().rpartition("_")[2]
            owners = [size for size in work.problem if last in (size.upper(), f"B{size.upper()}")]
            if owners and name not in owners:
                continue
            there = other.launch.constexprs.get(constant)
            if type(there) is not int or there < 1 or other.problem[name] % there:
                return False
    return True


def _off_multiple(work: Workload, num_xcds: int) -> list[tuple[Grid, Mapping[str, int]]]:
    """Look for a grid off a multiple of the XCDs by stretching one size at a time, one item short of even."""
    for name in sorted(set(work.problem) - set(work.launch.constexprs)):
        for quarters in (5, 3, 7, 9):
            found = []
            for short in (1, 0):
                other = _at(work, {**work.problem, name: max(1, work.problem[name] * quarters // 4 - short)})
                if other and num_xcds < other.grid.num_pids <= MAX_PROGRAMS and other.grid.num_pids % num_xcds:
                    found.append((other.grid, other.problem))
            if found:
                return found
    return []


def _most_programs_then_ragged(point: tuple[Grid, Mapping[str, int]]) -> tuple[int, list[int]]:
    grid, sizes = point
    return -grid.num_pids, [sizes[name] for name in sorted(sizes)]


def _changes_grid(work: Workload, name: str) -> bool:
    """Whether one size alone is known to change the grid."""
    return any(
        grid != work.grid and {one for one in sizes if sizes[one] != work.problem.get(one)} == {name}
        for grid, sizes in work.others
    )


def _shrunk(work: Workload, name: str, least: int, same_grid: bool = False) -> Workload:
    """Make one size as short as may be, down to about ``least``: in one jump, or halving as long as that works."""

    def fits(shorter: Workload | None) -> bool:
        return shorter is not None and (not same_grid or shorter.grid == work.grid) and _is_as_even(work, shorter)

    value = work.problem[name]
    steps = max(0, -(-value // least) - 1).bit_length()
    if steps > 1 and fits(jump := _at(work, {**work.problem, name: value >> steps})):
        assert jump is not None
        return jump
    found = work
    for _ in range(steps):
        shorter = _at(found, {**found.problem, name: found.problem[name] // 2})
        if not fits(shorter):
            break
        assert shorter is not None
        found = shorter
    return found


def _at(work: Workload, sizes: Mapping[str, int]) -> Workload | None:
    if sizes == work.problem:  # a user's file takes half a second to ask
        return work
    try:
        return work.at(sizes)
    except SwizzleSimError:
        return None
