"""`Claims`: tiles that the programs of a persistent kernel take from atomic counters as they go."""

from __future__ import annotations

from dataclasses import dataclass

from xcd_model.errors import ReplayError


@dataclass(frozen=True, kw_only=True)
class Claims:
    """How the programs of a persistent kernel claim tiles from atomic counters, rather than in steps of the programs.

    Pool k hands out tiles k, k + pools, k + 2 pools, ... as far as they are below ``local``, to programs k, k + pools,
    ...; a program whose pool is empty claims from one more counter, which hands out ``local``, ``local`` + 1, ... to
    all. So a single counter is one pool of all tiles; with a pool for each XCD, a tile of a pool is computed on the XCD
    where round robin would put the workgroup of the same id. Where programs steal, one whose pool is empty claims from
    the next pools in turn before it claims from the counter for all, and no tile is bound to an XCD.

    Parameters
    ----------
    pools : int
        Counters that only some programs ask.
    local : int
        Tiles in pools; the others are for all programs.
    steals : bool
        Whether a program whose pool is empty claims from the others'.

    Raises
    ------
    ReplayError
        If there is no pool, or a negative number of tiles in them.

    Source: ROCm/tritonBLAS PR 64, AMD-AGI/Primus-Turbo PR 353: their per-XCD, global and hierarchical modes;
    ROCm/tritonBLAS PR 86 for stealing.
    """

    pools: int
    local: int
    steals: bool = False

    def __post_init__(self):
        if self.pools < 1 or self.local < 0:
            raise ReplayError(f"pools = {self.pools}, local = {self.local}: at least 1 pool, and 0 tiles in them")
