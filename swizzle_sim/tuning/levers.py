"""`Levers`: what a search may change of a kernel, and the judge of each instance.

The order is one of the families' shortlist; the configuration, constants and compile options, is of one space.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from swizzle_sim.capture.workload import Workload
from swizzle_sim.language import Swizzle, family
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.rewrite import Rewritten, rewrite_workload
from swizzle_sim.search.candidates import LAUNCH_ORDER, Candidate, distinct_shortlist
from swizzle_sim.search.judge import Judge
from swizzle_sim.search.ranking import Objective
from swizzle_sim.search.templates.space import Space, Values
from swizzle_sim.search.templates.template import ParameterRange
from swizzle_sim.tuning.template import KEPT, Template
from swizzle_sim.workload.kernels import Kernel
from xcd_model.errors import SwizzleSimError

LEVERS = ("order", "configuration")
OPTIONS = "options"  # varies options of the compiler that the launch does not have, as part of the configuration
KNOWN = (*LEVERS, OPTIONS)
MOST_UNWRITABLE = 16  # orders of a kernel that cannot be written, until none is tried


@dataclass(eq=False)
class Levers:
    """The levers of a kernel, and judges of its instances."""

    template: Template
    objective: Objective
    replay: str
    seed: int = 0
    jitter_ns: float = 0.0
    refused: dict[str, str] = field(default_factory=dict)  # levers, or parts of them, that the kernel does not have

    def __post_init__(self) -> None:
        self.base, self.space = self._scorer(self.template.base), Configurations(self.template)
        self._judge = lru_cache(KEPT)(self._judge_of)
        self._unwritable = 0.0  # orders in a row that no source takes, before the first that one does
        if next(distinct_shortlist(self.base), None) is None:
            self.refused["order"] = f"no family has another order of {self.template.base.name}'s grid"
        if self.template.problem:
            self.refused["configuration"] = self.template.problem
        if self.template.no_numbers:
            self.refused["configuration of blocks"] = self.template.no_numbers

    def has(self, lever: str) -> bool:
        """Whether the kernel has a lever."""
        return self.space.size > 1 if lever == "configuration" else "order" not in self.refused

    def judge(self, values: Mapping[str, int]) -> Judge | None:
        """Judge of the orders of an instance; None where it is pruned."""
        return self._judge(tuple(values.items()))

    def _judge_of(self, values: tuple[tuple[str, int], ...]) -> Judge | None:
        made = self.template.kernel(dict(values))
        if made is None:
            return None
        scorer = self.base if made is self.template.base else self._scorer(made)
        return Judge(scorer, (self.objective,), alone=True)

    def estimated(self, values: Mapping[str, int]) -> Judge | None:
        """Judge of an instance that is not compiled yet, by estimated resources; None where nothing is known of it."""
        made = self.template.sketch(values) if self.objective.name == "time" else None
        return Judge(self._scorer(made), (self.objective,), alone=True) if made else None

    def _scorer(self, made: Kernel) -> Scorer:
        return Scorer(made, self.template.gpu, replay=self.replay, seed=self.seed, jitter_ns=self.jitter_ns)

    def writable(self, values: Mapping[str, int], order: str) -> bool:
        """Whether an order can be put into the source of an instance; the first of those that cannot is named."""
        if order == LAUNCH_ORDER.name or self.template.base.launch is None:
            return True
        if self._unwritable >= MOST_UNWRITABLE:
            return False
        try:
            ordered(self, self.template.workload(values), order)
        except SwizzleSimError as error:
            if str(error) not in self.refused.values():
                self.refused[f"order {order} and its like"] = str(error)
            self._unwritable += 1
            return False
        self._unwritable = -math.inf
        return True

    def candidate(self, values: Mapping[str, int], order: str = LAUNCH_ORDER.name) -> Candidate:
        """Order of an instance."""
        return Candidate(order, family(order), "tune", {"values": dict(values)})

    def least_us(self, judge: Judge) -> float:
        """Time that no order of an instance goes below: what CUs execute, on those that its workgroups fill."""
        scorer = judge.scorer
        made, cus = scorer.kernel, scorer.gpu.cus
        workgroups = made.programs or made.grid.num_pids
        rounds = workgroups / cus if scorer.work.uneven or made.programs else -(-workgroups // cus)
        filled = workgroups / (max(1.0, rounds) * cus)
        return scorer.sent.n_instructions * scorer.issue_model.compute_fs / (1e9 * cus * filled)


def ordered(levers: Levers, work: Workload, order: str) -> Rewritten:
    """Source of an instance with an order in it."""
    return rewrite_workload(work, Swizzle.parse(family(order), name=order), num_xcds=levers.template.gpu.xcds)


@dataclass(frozen=True)
class Configurations(Space):
    """Configurations of a kernel."""

    template: Template

    @property
    def ranges(self) -> tuple[ParameterRange, ...]:
        """Values of each parameter."""
        return tuple(ParameterRange(name, values, str(values)) for name, values in self.template.ranges.items())

    @property
    def start(self) -> Values:
        """The kernel as it is."""
        return {name: self.template.start[name] for name in self.template.ranges}

    def whole(self, values: Mapping[str, int]) -> Values:
        """Values of a configuration, with those that are not searched."""
        return {**self.template.start, **values}

    def allows(self, values: Values) -> bool:
        """Whether a configuration may fit a CU without spills, as far as is known before its compile."""
        return self.template.is_plausible(self.whole(values))
