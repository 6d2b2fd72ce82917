"""Sizes of a kernel small enough to interpret, grids that do not divide by the XCDs among them."""

from __future__ import annotations

from collections.abc import Mapping

from swizzle_sim.swizzle.grid import Grid
from swizzle_sim.workload import Workload
from xcd_model.errors import SwizzleSimError

MAX_PROGRAMS = 48
_FIRST_LENGTH, _LEAST_LENGTH = 512, 48


def with_cheap_programs(work: Workload, blocks: bool = True) -> Workload:
    """Return the kernel with shorter programs on the same grid; with ``blocks``, smaller blocks first.

    Parameters
    ----------
    work : Workload
    blocks : bool
        Whether constants of the kernel that are powers of two may shrink too, which changes the grid.
    """
    constants = set(work.launch.constexprs)
    found = work
    if blocks:
        for name in sorted(set(work.problem) - constants):
            found = _shrunk(found, name, _FIRST_LENGTH)
        for name in sorted(set(work.problem) & constants):
            value = found.problem[name]
            for smaller in (2**k for k in range(4, value.bit_length() - 1) if value & (value - 1) == 0):
                other = _at(found, {**found.problem, name: smaller})
                if other is not None:
                    found = other
                    break
    for name in sorted(set(work.problem) - constants):
        if not _changes_grid(found, name):
            found = _shrunk(found, name, _LEAST_LENGTH, same_grid=True)
    return found


def small_workloads(work: Workload, num_xcds: int) -> list[Workload]:
    """Return the kernel at up to three small sizes: off a multiple of the XCDs, on one, and fewer programs than XCDs.

    Parameters
    ----------
    work : Workload
    num_xcds : int

    Returns
    -------
    workloads : list of Workload
        Empty where the kernel cannot be made small.
    """
    cheap = with_cheap_programs(work)
    known = [(grid, sizes) for grid, sizes in (*cheap.others, (cheap.grid, cheap.problem)) if sizes]
    known = sorted((point for point in known if point[0].num_pids <= MAX_PROGRAMS), key=_most_programs_then_ragged)
    counts = [grid.num_pids for grid, _ in known]
    kinds = (
        [point for point, n in zip(known, counts, strict=True) if n > num_xcds and n % num_xcds],
        [point for point, n in zip(known, counts, strict=True) if n > num_xcds and n % num_xcds == 0],
        [point for point, n in zip(known, counts, strict=True) if n <= num_xcds],
    )
    if not kinds[0]:
        kinds[0].extend(_off_multiple(cheap, num_xcds))
    built = (next(filter(None, (_at(cheap, sizes) for _, sizes in points)), None) for points in kinds)
    return [one for one in built if one is not None]


def _off_multiple(work: Workload, num_xcds: int) -> list[tuple[Grid, Mapping[str, int]]]:
    """Look for a grid off a multiple of the XCDs by stretching one size at a time, one item short of even."""
    for name in sorted(set(work.problem) - set(work.launch.constexprs)):
        for quarters in (5, 3, 7, 9):
            other = _at(work, {**work.problem, name: max(1, work.problem[name] * quarters // 4 - 1)})
            if other is not None and num_xcds < other.grid.num_pids <= MAX_PROGRAMS and other.grid.num_pids % num_xcds:
                return [(other.grid, other.problem)]
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
        return shorter is not None and (not same_grid or shorter.grid == work.grid)

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
