"""`Score`, what a replay says of a candidate, and `Balance`, how evenly it spreads work: data, as runs keep it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from swizzle_sim.workload.price import RemapPrice

MAY_BE_NAN = ("l1_hit_rate", "data_l2_hit_rate", "mall_hit_rate", "energy_j", "energy_low_j", "energy_high_j")


@dataclass(frozen=True, kw_only=True)
class Balance:
    """How evenly one order spreads the work over XCDs and CUs, and when they end."""

    per_xcd_instructions: tuple[int, ...]  # tensor instructions that each XCD executes
    # tuple of float [us; turns of the lockstep replay]: when the last CU of each XCD ends; 0 for an XCD without work
    per_xcd_finish: tuple[float, ...]
    # [us; turns of the lockstep replay]: when the last CU ends; when all would, were the same CU time shared evenly;
    # and for how long before the end some CU has nothing left to do
    makespan: float
    ideal: float
    tail: float

    @property
    def over_ideal(self) -> float:
        """Makespan over ideal, at least 1."""
        return self.makespan / self.ideal

    @property
    def last_over_first(self) -> float:
        """End of the last XCD over that of the first; inf where an XCD has no work."""
        first = min(self.per_xcd_finish)
        return max(self.per_xcd_finish) / first if first else math.inf

    @property
    def heaviest_over_mean(self) -> float:
        """Work of the XCD that has most of it, over the mean."""
        return max(self.per_xcd_instructions) * len(self.per_xcd_instructions) / sum(self.per_xcd_instructions)

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        values = {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}
        return {**values, "makespan_over_ideal": self.over_ideal}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Balance:
        """Inverse of `as_dict`."""
        given: dict[str, Any] = {name: values[name] for name in cls.__dataclass_fields__}
        lists = {name: tuple(value) for name, value in given.items() if isinstance(value, list)}
        return cls(**given | lists)


@dataclass(frozen=True, kw_only=True)
class Score:
    """Simulated figures of one candidate; only bijections have any.

    Parameters
    ----------
    l2_hit_rate, mall_hit_rate, l1_hit_rate : float
        0 to 1, in requests; the Infinity Cache's is of the L2s' line fills, the L1s' of the waves' reads. Nan without
        such a cache, or without reads.
    data_l2_hit_rate : float
        ``l2_hit_rate`` without the fetches of code, which counters hold; nan in runs of earlier versions.
    l2_requests, l2_hits, l2_misses : int
        As TCC_HIT and TCC_MISS count.
    hbm_read_bytes, hbm_write_bytes : int [bytes]
    time_us : float [us]
        Lockstep: roofline over windows of turns, see `xcd_model.roofline`. Timed: end of the last workgroup.
    speedup : float
        Time of the launch order over this time.
    limiter : str
        Resource that takes most of the time: compute, l2, fabric, mall, hbm or power, see ``busy_us``.
    busy_us : mapping of str to float [us]
        Timed: how long each resource is busy, at most the time; lockstep: time of the windows that each decides. Empty
        in runs of earlier versions.
    bound_l2_hit_rate : float
        Upper bound of every balanced bijection.
    per_xcd_l2_hit_rate : tuple of float
    energy_j, energy_low_j, energy_high_j : float [J]
        Middle and range of assumed rates, see `xcd_model.analysis.timing`: only differences on one GPU mean anything.
        Nan for a GPU without rates.
    launch : int
        Launch that was counted, from 1; later than the first for a kernel launched repeatedly.
    steady : bool
        Its counts equal those of the launch before it.
    price : RemapPrice, optional
        What the remapping costs in registers and workgroups a CU, with which it was replayed; None where it was not
        compiled, and the kernel's own resources were taken.
    balance : Balance or None
        Work and end of each XCD, makespan and tail; None in runs of earlier versions.
    """

    l2_hit_rate: float
    mall_hit_rate: float
    l2_requests: int
    l2_hits: int
    l2_misses: int
    hbm_read_bytes: int
    hbm_write_bytes: int
    time_us: float
    speedup: float
    limiter: str
    bound_l2_hit_rate: float
    per_xcd_l2_hit_rate: tuple[float, ...]
    energy_j: float
    energy_low_j: float
    energy_high_j: float
    l1_hit_rate: float = math.nan
    data_l2_hit_rate: float = math.nan
    launch: int = 1
    steady: bool = False
    busy_us: Mapping[str, float] = field(default_factory=dict)
    price: RemapPrice | None = None
    balance: Balance | None = None

    @property
    def hbm_bytes(self) -> int:
        """Bytes to and from HBM."""
        return self.hbm_read_bytes + self.hbm_write_bytes

    @property
    def distance_to_bound(self) -> float:
        """How far the hit rate is below the bound, 0 to 1."""
        return self.bound_l2_hit_rate - self.l2_hit_rate

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready; a rate that does not exist is None."""
        values = asdict(self)
        for name in MAY_BE_NAN:
            values[name] = _none_if_nan(values[name])
        values["per_xcd_l2_hit_rate"] = [_none_if_nan(rate) for rate in self.per_xcd_l2_hit_rate]
        values["price"] = self.price.as_dict() if self.price else None
        values["balance"] = self.balance and self.balance.as_dict()
        return values

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Score:
        """Inverse of `as_dict`."""
        back = dict(values)
        for name in MAY_BE_NAN:
            back[name] = _nan_if_none(values.get(name))
        back["per_xcd_l2_hit_rate"] = tuple(_nan_if_none(rate) for rate in values["per_xcd_l2_hit_rate"])
        back["price"] = RemapPrice.from_dict(values["price"]) if values.get("price") else None
        back["balance"] = Balance.from_dict(values["balance"]) if values.get("balance") else None
        return cls(**back)


def _none_if_nan(rate: float) -> float | None:
    return None if math.isnan(rate) else rate


def _nan_if_none(rate: float | None) -> float:
    return math.nan if rate is None else rate
