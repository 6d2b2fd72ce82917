"""`Space`: the candidates that a template stands for at a kernel's grid."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from swizzle_sim.kernels import Kernel
from swizzle_sim.swizzle.families.condition import evaluate
from swizzle_sim.swizzle.form import Cond
from swizzle_sim.templates.ranges import Range
from swizzle_sim.templates.template import Template
from xcd_model import Gpu
from xcd_model.errors import LanguageError, SearchError

ENUMERATED = 1 << 16  # combinations up to which constraints are tried on all
DRAWS = 4096  # of a larger space, before it counts as empty

Values = dict[str, int]


class Space:
    """A template at one kernel, or at several sizes of it, and a GPU.

    Parameters
    ----------
    template : Template
    kernels : sequence of Kernel
        The constraints hold at each.
    gpu : Gpu

    Raises
    ------
    SearchError
        If the constraints leave nothing; names the one at fault where it is one.
    LanguageError
        If a constraint reads a name that is neither a parameter nor the grid's nor the kernel's.
    """

    def __init__(self, template: Template, kernels: Sequence[Kernel], gpu: Gpu):
        self.template = template
        self._known = [known_values(kernel, gpu) for kernel in kernels]
        taken = {one.name for one in template.ranges} & set(self._known[0])
        if taken:
            raise LanguageError(
                f"template {template.name}: parameter {min(taken)}: that is a size of the kernel, so rename it",
                filename=template.filename,
                code="parameter",
            )
        if next(self._some(), None) is None:
            raise SearchError(self._why_empty(), code="space")

    @property
    def ranges(self) -> tuple[Range, ...]:
        """Values of each parameter."""
        return self.template.ranges

    @property
    def size(self) -> int:
        """Combinations of values, constraints left aside."""
        return self.template.size

    @cached_property
    def start(self) -> Values:
        """Where a search begins: the middle of each range, or the first combination that is allowed."""
        middle = {one.name: one.middle for one in self.template.ranges}
        return middle if self.allows(middle) else next(self._some())

    def allows(self, values: Mapping[str, int]) -> bool:
        """Whether the constraints hold."""
        return not any(self._refusals(values))

    def points(self) -> Iterator[Values]:
        """Every combination that is allowed, the last parameter fastest."""
        return (values for values in self._all() if self.allows(values))

    def _all(self) -> Iterator[Values]:
        names = [one.name for one in self.template.ranges]
        for values in itertools.product(*(one.values for one in self.template.ranges)):
            yield dict(zip(names, values, strict=True))

    def _some(self) -> Iterator[Values]:
        if self.size <= ENUMERATED:
            return self.points()
        return (values for values in self._draws() if self.allows(values))

    def _draws(self) -> Iterator[Values]:
        draw = random.Random(0)
        for _ in range(DRAWS):
            yield {one.name: draw.choice(one.values) for one in self.template.ranges}

    def _refusals(self, values: Mapping[str, int]) -> Iterator[str]:
        """Constraints that do not hold."""
        for text, condition in zip(self.template.requires, self.template.conditions, strict=True):
            if not all(self._holds(text, condition, known, values) for known in self._known):
                yield text

    def _holds(self, text: str, condition: Cond, known: Mapping[str, int], values: Mapping[str, int]) -> bool:
        try:
            return bool(evaluate(condition, {**known, **values}))
        except ZeroDivisionError:
            return False
        except LanguageError as error:
            raise LanguageError(
                f"template {self.template.name}: requires {text}: {error.message}",
                filename=self.template.filename,
                code=error.code,
            ) from None

    def _why_empty(self) -> str:
        few = self.size <= ENUMERATED
        tried = list(itertools.islice(self._all() if few else self._draws(), ENUMERATED))
        failing = [set(self._refusals(values)) for values in tried]
        alone = [text for text in self.template.requires if all(text in refused for refused in failing)]
        how_many = f"all {len(tried)} combinations" if few else f"each of {DRAWS} random combinations of {self.size}"
        what = "; ".join(alone) if alone else " together with ".join(self.template.requires)
        return f"template {self.template.name}: requires {what}: that excludes {how_many}, so there is nothing to try"


def known_values(kernel: Kernel, gpu: Gpu) -> dict[str, int]:
    """Names that a constraint may read besides parameters."""
    grid = kernel.grid
    values = {**kernel.problem, "num_pids": grid.num_pids, "num_xcds": gpu.xcds, "cus_per_xcd": gpu.cus_per_xcd}
    if grid.shape:
        values["num_pid_m"], values["num_pid_n"] = grid.shape
    for axis, side in zip("xyz", grid.launch, strict=False):
        values[f"num_pid_{axis}"] = side
    return values
