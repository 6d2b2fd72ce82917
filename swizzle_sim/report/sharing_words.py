"""What a kernel's workgroups share, in words: the memory analysis of `swizzle-sim show`, and of a model's prompt."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from swizzle_sim.report.sharing import Shared, axes_of
from swizzle_sim.swizzle.grid import Grid
from xcd_model import Gpu, xcd_of

LISTED = 8  # sharers named one by one
NEAR = 4  # tiles away that still count as a neighbour


def sharing_words(
    shared: Sequence[Shared], grid: Grid, workgroup: int, gpu: Gpu, programs: int | None = None
) -> list[str]:
    """A sentence or three for each tensor: what the workgroup touches, with whom, and on which XCDs they run.

    Parameters
    ----------
    shared : sequence of Shared
        Of ``workgroup``, see `swizzle_sim.report.sharing.sharing`.
    grid : Grid
    workgroup : int
    gpu : Gpu
    programs : int, optional
        Of a persistent kernel.

    Returns
    -------
    sentences : list of str
    """
    xcd = xcd_of(grid.num_pids, gpu, programs)
    return [_of_tensor(one, grid, workgroup, xcd) for one in shared]


def _of_tensor(one: Shared, grid: Grid, workgroup: int, xcd: np.ndarray) -> str:
    verb = "reads and writes" if one.reads and one.writes else "reads" if one.reads else "writes"
    text = f"{one.tensor} ({_size(one.size_bytes)}): workgroup {workgroup} {verb} {_lines(one.lines)}"
    sharers = np.flatnonzero(one.share)
    sharers = sharers[sharers != workgroup]
    if not sharers.size:
        which = "that line" if one.lines == 1 else "those"
        return f"{text}, and nobody else touches {which}: where it runs makes no difference to {one.tensor}."
    share = one.share[sharers]
    low, high = float(share.min()), float(share.max())
    how = "all of them" if low == 1 else f"{_pct(low)} of them" if low == high else f"{_pct(low)} to {_pct(high)}"
    if one.lines == 1:
        how = "that line"
    n = "1 other touches" if sharers.size == 1 else f"{sharers.size:,} others touch"
    here = int(np.count_nonzero(xcd[sharers] == xcd[workgroup]))
    return f"{text}; {n} {how}: {_who(sharers, grid, workgroup)}. {_placed(here, sharers.size)}"


def _placed(here: int, sharers: int) -> str:
    """How many sharers the hardware's round robin puts on the same XCD."""
    if sharers == 1:
        return f"As launched it runs on {'the same' if here else 'another'} XCD."
    many = "none of them runs" if not here else "all of them run" if here == sharers else f"{here:,} of them run"
    return f"As launched {many} on its XCD."


def _who(sharers: np.ndarray, grid: Grid, workgroup: int) -> str:
    """Name a set of workgroups by where they lie."""
    if sharers.size == grid.num_pids - 1:
        return "every workgroup of the grid"
    axes = axes_of(grid)
    own = {name: workgroup // stride % extent for name, (stride, extent) in axes.items()}
    away = {name: sharers // stride % extent - own[name] for name, (stride, extent) in axes.items()}
    fixed = [name for name in axes if axes[name][1] > 1 and not away[name].any()]
    free = [name for name in axes if axes[name][1] > 1 and away[name].any()]
    members = int(np.prod([axes[name][1] for name in free])) - 1
    same = " and ".join(f"{name} = {own[name]}" for name in fixed)
    if fixed and sharers.size == members:
        return f"all with {same}"
    if sharers.size <= LISTED:
        steps = sorted(zip(*(away[name].tolist() for name in axes), strict=True))
        listed = ", ".join("(" + ", ".join(f"{step:+d}" for step in steps_of) + ")" for steps_of in steps)
        return f"{'the one' if sharers.size == 1 else 'those'} at {listed} from it in ({', '.join(axes)})"
    reach = ", ".join(_reach(name, away[name], axes[name][1]) for name in free)
    box = int(np.prod([max(0, int(away[name].max())) - min(0, int(away[name].min())) + 1 for name in free])) - 1
    near = all(int(abs(away[name]).max()) <= NEAR for name in free)
    kind = "neighbours" if near else "all" if box == sharers.size else "some"
    return f"{kind} with {same + ' and ' if same else ''}{reach}"


def _reach(name: str, away: np.ndarray, extent: int) -> str:
    """How far sharers lie away along one axis."""
    low, high = min(0, int(away.min())), max(0, int(away.max()))
    return f"any {name}" if high - low == extent - 1 else f"{name} {low:+d} to {high:+d} from it"


def _lines(n: int) -> str:
    return f"{n:,} line{'s' if n > 1 else ''} of it"


def _pct(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= 0.01 else f"{100 * share:.2g} %"


def _size(size_bytes: int) -> str:
    for unit, scale in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if size_bytes >= scale:
            return (
                f"{size_bytes / scale:.3g} {unit}" if size_bytes < 1000 * scale else f"{size_bytes / scale:.0f} {unit}"
            )
    return f"{size_bytes} B"
