"""`Result` and `Suite`: what was found for one kernel, and for many."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from swizzle_sim.scoring import Score


@dataclass(frozen=True, kw_only=True)
class Result:
    """What was found for one kernel.

    Parameters
    ----------
    kernel : str
    problem : mapping of str to int
    grid : str
    launches : int
        How often a run of the kernel launches it; `Score.launch` says which one was counted.
    baseline : Score
        Of the order as launched.
    best_name, best_source, best_domain : str
        Best family, its text, and where it is a bijection; the identity where no family beats the order as launched.
    best : Score
    tried : int
        Distinct permutations replayed, the order as launched included.
    known : int
        Combinations of families and parameters that there are for the kernel.
    seconds : float [s]
        That the kernel took.
    """

    kernel: str
    problem: Mapping[str, int]
    grid: str
    launches: int
    baseline: Score
    best_name: str
    best_source: str
    best_domain: str
    best: Score
    tried: int
    known: int
    seconds: float

    @property
    def at_bound(self) -> bool:
        """Nothing can be better."""
        return self.best.l2_hit_rate >= self.best.bound_l2_hit_rate

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {**asdict(self), "baseline": self.baseline.as_dict(), "best": self.best.as_dict()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Result:
        """Inverse of `as_dict`."""
        scores = {name: Score.from_dict(values[name]) for name in ("baseline", "best")}
        return cls(**{**values, **scores})


@dataclass(frozen=True, eq=False)
class Suite:
    """A finished run over kernels.

    Parameters
    ----------
    folder : Path
    gpu, replay : str
    results : tuple of Result
    """

    folder: Path
    gpu: str
    replay: str
    results: tuple[Result, ...]
