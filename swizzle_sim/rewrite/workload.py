"""Rewrites a workload: the ids that are remapped are the ones that its scores count."""

from __future__ import annotations

from swizzle_sim.capture.occupancy_workload import Workload
from swizzle_sim.rewrite.kernel import Rewritten, rewrite_kernel
from swizzle_sim.swizzle.swizzle import Swizzle
from xcd_model.errors import RewriteError


def rewrite_workload(work: Workload, swizzle: Swizzle, *, num_xcds: int, at: str = "auto") -> Rewritten:
    """Put a swizzle into a workload's kernel.

    Parameters
    ----------
    work : Workload
    swizzle : Swizzle
    num_xcds : int
    at : {"auto", "program", "tile"}
        Whose ids to remap; by default the tile's of a kernel that is declared persistent, else the program's, since
        those are what its grid and its scores count.

    Raises
    ------
    RewriteError
        As `rewrite_kernel`; and for ``at="program"`` of a kernel that is declared persistent.
    NotBijective, LanguageError
        As `rewrite_kernel`.
    """
    if work.programs is not None and at == "program":
        raise RewriteError(
            f"{work.name} is declared with programs=..., so a swizzle orders its {work.grid.num_pids} tiles: leave "
            "that out of the declaration to order its programs",
            path=work.launch.path,
        )
    if at == "auto":
        at = "program" if work.programs is None else "tile"
    return rewrite_kernel(
        work.launch,
        swizzle,
        grid=work.grid,
        num_xcds=num_xcds,
        sizes=work.problem,
        lattice=work.others,
        at=at,
    )
