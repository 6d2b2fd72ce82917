"""`TemplateSpace`, the candidates of a template at a kernel's grid, and the published families as templates."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from swizzle_sim.language.families import FAMILIES, Family, parse_spec
from swizzle_sim.language.ir import Cond, evaluate
from swizzle_sim.search.candidates import shortlist, work_of
from swizzle_sim.search.templates.template import MOST_VALUES, ParameterRange, Template
from swizzle_sim.workload.kernels import Kernel
from xcd_model import Gpu
from xcd_model.errors import LanguageError, SearchError, UnknownName

ENUMERATED = 1 << 16  # combinations up to which constraints are tried on all
DRAWS = 4096  # of a larger space, before it counts as empty

Values = dict[str, int]

# Placements and orders that are combined. Left out are repeats of another combination: windowed is chunked+group_m,
# contiguous_naive is contiguous where it holds, block_first is row and head_first column.
PLACING = ("", "contiguous", "chunked", "row_bands")
ORDERING = (
    *("row", "column", "snake", "morton", "hilbert", "group_m", "group_n"),
    *("panel_snake", "blocks", "morton_blocks"),
)
DEALING = ("head_first_swizzled", "block_first_swizzled", "head_groups", "column_panels", "row_panels")
BOXING = ("boxes", "morton_3d")
BALANCING = ("longest_first", "paired")  # where the work of the workgroups is uneven
# Axis of the tile grid that bounds a parameter.
_ROWS = {
    ("group_m", "size"),
    ("blocks", "rows"),
    ("blocks", "size"),
    ("morton_blocks", "rows"),
    ("row_panels", "height"),
}


class Space:
    """Combinations of parameters, some of which are allowed."""

    @property
    def ranges(self) -> Sequence[ParameterRange]:
        """Values of each parameter."""
        raise NotImplementedError

    @property
    def size(self) -> int:
        """Combinations of values, before constraints."""
        return math.prod(len(one.values) for one in self.ranges)

    @property
    def start(self) -> Values:
        """First combination to try."""
        raise NotImplementedError

    def allows(self, values: Values) -> bool:
        """Whether a combination may be tried."""
        raise NotImplementedError

    def points(self) -> Iterator[Values]:
        """Every combination that is allowed, the last parameter fastest."""
        return (values for values in self._all() if self.allows(values))

    def _all(self) -> Iterator[Values]:
        names = [one.name for one in self.ranges]
        for values in itertools.product(*(one.values for one in self.ranges)):
            yield dict(zip(names, values, strict=True))


class TemplateSpace(Space):
    """A template at one kernel, or at several sizes of it, and a GPU."""

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
    def ranges(self) -> tuple[ParameterRange, ...]:
        """Values of each parameter."""
        return self.template.ranges

    @cached_property
    def start(self) -> Values:
        """Start of a search: the middle of each range, or the first combination that is allowed."""
        middle = {one.name: one.middle for one in self.template.ranges}
        return middle if self.allows(middle) else next(self._some())

    def allows(self, values: Values) -> bool:
        """Whether all constraints hold."""
        return not any(self._refusals(values))

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
    """Values of the names that a constraint may read in addition to parameters."""
    grid = kernel.grid
    values = {**kernel.problem, "num_pids": grid.num_pids, "num_xcds": gpu.xcds, "cus_per_xcd": gpu.cus_per_xcd}
    if grid.shape:
        values["num_pid_m"], values["num_pid_n"] = grid.shape
    for axis, side in zip("xyz", grid.launch, strict=False):
        values[f"num_pid_{axis}"] = side
    return values


def family_template(names: str, kernel: Kernel, gpu: Gpu) -> Template:
    """Template of families joined by ``+``, with ranges bounded by the grid."""
    parts = []
    for name in names.split("+"):
        if name not in FAMILIES:
            raise UnknownName("swizzle family", name, FAMILIES)
        parts.append(FAMILIES[name])
    ranges, texts, called, requires = [], [], [], []
    for one in parts:
        own = {key: f"{one.name}_{key}" for key in one.parameters}
        for key, rule in one.parameters.items():
            high = max(rule.low, min(rule.high, _longest(one, key, kernel, gpu), MOST_VALUES))
            ranges.append(ParameterRange(own[key], tuple(range(rule.low, high + 1)), f"{rule.low}..{high}"))
        texts.append(one.text(**own))
        given = ", ".join(f"{key}={{{name}}}" for key, name in own.items())
        called.append(f"{one.name}({given})" if given else one.name)
        requires += [] if one.condition == "always" else [one.condition]
    return Template(
        "_".join(one.name for one in parts), tuple(ranges), tuple(requires), "".join(texts), "+".join(called)
    )


def published_values(kernel: Kernel, gpu: Gpu) -> dict[str, list[Values]]:
    """Parameters of the families' shortlist, by the name of their `family_template`, both most worth trying first."""
    found: dict[str, list[Values]] = {}
    for candidate in shortlist(kernel, gpu):
        parts = parse_spec(candidate.name)
        given = {f"{one.name}_{key}": value for one, parameters in parts for key, value in parameters.items()}
        found.setdefault("_".join(one.name for one, _ in parts), []).append(given)
    return found


def _longest(one: Family, key: str, kernel: Kernel, gpu: Gpu) -> int:
    """Largest value of a parameter that still changes the order on the grid."""
    grid = kernel.grid
    if key == "walk":
        return 3 if work_of(kernel, gpu).uneven else 1
    if one.axes == 0:
        return grid.num_pids // gpu.xcds
    if one.axes == 3:
        return grid.launch["xyz".index(key)] if len(grid.launch) == 3 else grid.num_pids
    rows, cols = grid.shape or (grid.num_pids, grid.num_pids)
    return rows if (one.name, key) in _ROWS else cols


def family_templates(kernel: Kernel, gpu: Gpu) -> list[Template]:
    """Every combination of families that makes sense on a kernel's grid; none places where there is one XCD alone."""
    grid, placing = kernel.grid, PLACING if gpu.xcds > 1 else PLACING[:1]
    if len(grid.launch) == 3:
        orders, more = list(BOXING), [name for name in placing if name]
    elif grid.shape:
        orders, more = [*ORDERING, *(BALANCING if work_of(kernel, gpu).uneven else ())], list(DEALING)
    else:
        return [family_template(name, kernel, gpu) for name in placing if name]
    names = ["+".join(part for part in (placement, order) if part) for placement in placing for order in orders]
    return [family_template(name, kernel, gpu) for name in [*names, *more]]
