"""`Levers`: the parameters of each lever of a kernel, as one space, and the scorer of a point in it.

| lever | parameters |
| --- | --- |
| order | none: the families' shortlist, in its order |
| configuration | constants and compile options, see `swizzle_sim.tuning.template` |
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.search.candidates import LAUNCH_ORDER, Candidate, distinct_shortlist
from swizzle_sim.search.judge import Judge
from swizzle_sim.search.ranking import Objective
from swizzle_sim.search.templates.space import Space, Values
from swizzle_sim.search.templates.template import ParameterRange
from swizzle_sim.tuning.template import KEPT, Template
from swizzle_sim.workload.kernels import Kernel

LEVERS = ("order", "configuration")
OPTIONS = "options"  # varies options of the compiler that the launch does not have, as part of the configuration
KNOWN = (*LEVERS, OPTIONS)


@dataclass(eq=False)
class Levers:
    """The parameters of a kernel's levers, and judges of its instances."""

    template: Template
    objective: Objective
    replay: str
    seed: int = 0
    jitter_ns: float = 0.0
    refused: dict[str, str] = field(default_factory=dict)  # levers, or parts of them, that the kernel does not have
    _judges: OrderedDict[tuple[int, ...], Judge] = field(default_factory=OrderedDict, repr=False)

    def __post_init__(self) -> None:
        base, gpu = self.template.base, self.template.gpu
        self.base = Scorer(base, gpu, replay=self.replay, seed=self.seed, jitter_ns=self.jitter_ns)
        if next(distinct_shortlist(self.base), None) is None:
            self.refused["order"] = f"no family has another order of {base.name}'s grid"
        if self.template.problem:
            self.refused["configuration"] = self.template.problem
        if self.template.no_numbers:
            self.refused["configuration of blocks"] = self.template.no_numbers

    def ranges(self, lever: str) -> dict[str, tuple[int, ...]]:
        """Parameters of a lever; none of an order, and where the kernel does not have it."""
        found = self.template.ranges if lever == "configuration" else {}
        return found if any(len(values) > 1 for values in found.values()) else {}

    def has(self, lever: str) -> bool:
        """Whether the kernel has a lever."""
        return bool(self.ranges(lever)) or (lever == "order" and "order" not in self.refused)

    @property
    def start(self) -> Values:
        """The kernel as it is."""
        return self.template.start

    def space(self, levers: Sequence[str]) -> JointSpace:
        """The parameters of some levers as one space."""
        return JointSpace(self, {name: values for lever in levers for name, values in self.ranges(lever).items()})

    def judge(self, values: Mapping[str, int]) -> Judge | None:
        """Judge of the orders of an instance; None where it is pruned."""
        key = self.template.key(values)
        if key in self._judges:
            self._judges.move_to_end(key)
            return self._judges[key]
        made = self.template.kernel(values)
        if made is None:
            return None
        self._judges[key] = Judge(self._scorer(made), (self.objective,), alone=True)
        if len(self._judges) > KEPT:
            self._judges.popitem(last=False)
        return self._judges[key]

    def _scorer(self, made: Kernel) -> Scorer:
        if made is self.template.base:
            return self.base
        return Scorer(made, self.template.gpu, replay=self.replay, seed=self.seed, jitter_ns=self.jitter_ns)

    def candidate(self, values: Mapping[str, int], order: Candidate = LAUNCH_ORDER) -> Candidate:
        """Order of an instance."""
        return Candidate(order.name, order.source, "tune", {"values": dict(values)})

    def least_us(self, judge: Judge) -> float:
        """Time that no order of an instance goes below: its operations, on the CUs that its workgroups fill."""
        scorer = judge.scorer
        made, cus = scorer.kernel, scorer.gpu.cus
        workgroups = made.programs or made.grid.num_pids
        rounds = workgroups / cus if scorer.work.uneven or made.programs else -(-workgroups // cus)
        filled = workgroups / (max(1.0, rounds) * cus)
        return made.issued_flops / (1e6 * scorer.gpu.peak_tflops[made.dtype] * filled)

    def changes(self, values: Mapping[str, int]) -> int:
        """Parameters that differ from the kernel as it is."""
        return sum(values[name] != was for name, was in self.start.items())


@dataclass(frozen=True)
class JointSpace(Space):
    """Points of some levers; what they leave alone is as it is."""

    levers: Levers
    of: Mapping[str, tuple[int, ...]]

    @property
    def ranges(self) -> tuple[ParameterRange, ...]:
        """Values of each parameter."""
        return tuple(ParameterRange(name, values, str(values)) for name, values in self.of.items())

    @property
    def start(self) -> Values:
        """The kernel as it is."""
        return {name: self.levers.start[name] for name in self.of}

    def whole(self, values: Mapping[str, int]) -> Values:
        """Values of all parameters."""
        return {**self.levers.start, **values}

    def allows(self, values: Values) -> bool:
        """Whether a configuration fits a CU and does not spill."""
        return self.levers.template.instance(self.whole(values)).resources is not None
