"""The launches that a proof speaks of: workgroups, tiles and XCDs as symbols, and every name that they supply.

One launch has ``num_pids <= limit`` workgroups and at most `MOST_XCDS` XCDs; ``limit`` is a symbol too, as large as
the literals of the text times the XCDs. The largest value that the proof met, a multiple of ``limit``, then says up to
how many workgroups no 32-bit value overflows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from swizzle_sim.language.ir import AXES, Cond
from swizzle_sim.proof import samples
from swizzle_sim.proof.execute import LIMIT, Infeasible, Path
from swizzle_sim.proof.knowledge import Unproved
from swizzle_sim.proof.polynomial import Poly, poly, variable

MOST_XCDS = 1024
LARGEST_LITERAL = 65536  # of a text that is followed
LARGEST_SIZE = 65536  # of a kernel, where it is a symbol
ROOT = "%id"  # the workgroup: its linear id, on a launch of one axis
_XCDS = ("num_xcds", "NUM_XCDS")


@dataclass(frozen=True)
class Launches:
    """All launches of one kind."""

    kind: str
    # values of names that the kernel supplies; one without a value is any number from 1 to `LARGEST_SIZE`
    sizes: Mapping[str, int] = field(default_factory=dict)
    where: Cond | None = None  # only launches on which this holds
    num_xcds: int | None = None  # only this count of XCDs
    literal: int = 1  # largest of the text: XCDs times it are at most the limit
    # the sides are known by their product alone, which is one symbol: ``cdiv(num_pid_m * num_pid_n, 8)`` is then no
    # quotient of a product, and every fact about it has a degree less
    by_number: bool = False

    @property
    def sides(self) -> tuple[str, ...]:
        """Names of the counts that multiply to the number of workgroups."""
        return {
            "line": ("num_pids",),
            "tiles": ("num_pid_m", "num_pid_n"),
            "plane": ("num_pid_x", "num_pid_y"),
            "box": ("num_pid_x", "num_pid_y", "num_pid_z"),
        }[self.kind]

    @property
    def total(self) -> Poly:
        """Workgroups of the launch."""
        return variable("num_pids") if self.by_number else _product([variable(name) for name in self.sides])

    def setup(self, path: Path, *, linear: bool = True) -> None:
        """Give a path its launch and its workgroup."""
        known = path.known
        names = self.sides
        drawn, xcd_counts = samples.launches(len(names), self.literal, self.num_xcds)
        known.samples, totals = samples.Samples(samples.COUNT), np.prod(drawn, axis=0)
        if self.by_number:
            for name, values in zip(names, drawn, strict=True):
                path.values[name] = variable(name)
                known.samples.give(name, values)
            known.folded, names, drawn = names, ("num_pids",), [totals]
        limits = np.maximum(totals, xcd_counts * self.literal)
        limit = known.new(LIMIT, False, limits)
        sides = [known.new(name, False, values) for name, values in zip(names, drawn, strict=True)]
        known.know(*(side - 1 for side in sides))
        total = self.total
        known.know(limit - total, *(limit - side for side in sides))
        xcds = poly(self.num_xcds) if self.num_xcds else known.new("num_xcds", False, xcd_counts)
        known.know(xcds - 1, limit - xcds * self.literal)
        for name in _XCDS:
            path.values[name] = xcds
        path.values["num_pids"] = total
        for name, side in zip(names, sides, strict=True):
            path.values[name] = side
        for name, value in self.sizes.items():
            path.values.setdefault(name, poly(value))
        if linear or len(sides) == 1 or self.kind == "tiles":
            root = known.new(ROOT, True, samples.workgroups(totals, 0))
            known.know(total - 1 - root)
        else:
            digits = [
                known.new(f"{ROOT}_{axis}", True, samples.workgroups(drawn[k], k))
                for k, axis in enumerate(AXES[: len(sides)])
            ]
            known.know(*(side - 1 - digit for side, digit in zip(sides, digits, strict=True)))
            root = _linear(digits, sides)
        path.values[ROOT] = root
        path.reader = self.read
        if self.where is not None and not self.by_number and not path.truth(self.where):
            raise Infeasible

    def read(self, path: Path, name: str) -> Poly:  # noqa: PLR0911 - one a group of names
        """Value of a name that the launch or the kernel supplies."""
        value = path.values
        if name == "pid":
            return value[ROOT]
        for k, axis in enumerate(AXES):
            if name in (axis, f"pid_{axis}", f"program_id({k})"):
                return self._coordinate(path, k)
            if name in (f"num_pid_{axis}", f"num_programs({k})"):
                return self.extent(path, k)
        if name in ("pid_m", "pid_n"):
            if self.kind == "tiles":
                return path.divide(value[ROOT], variable("num_pid_n"))[name == "pid_n"]
            if self.kind == "plane" or name == "pid_m":
                return self._coordinate(path, int(name == "pid_n"))
        if name in ("num_pid_m", "num_pid_n") and (self.kind == "plane" or name == "num_pid_m"):
            return self.extent(path, int(name == "num_pid_n"))
        if not name.isidentifier() or name.startswith(("num_p", "pid")):
            raise Unproved(f"{name} has no value on such a launch")
        among = path.known.samples
        most = np.floor(among.at(variable(LIMIT)) / among.at(value["num_xcds"]))
        path.known.steps.append(("new", name))
        size = path.known.new(name, False, 1 + samples.workgroups(np.minimum(most, LARGEST_SIZE), len(value)))
        path.known.know(size - 1, variable(LIMIT) - size, variable(LIMIT) - size * value["num_xcds"])
        return size

    def roots(self, path: Path) -> tuple[str, ...]:
        """Variables that are the workgroup of a path."""
        return tuple(name for name in path.known.order if name.startswith(ROOT))

    def read_count(self, path: Path, name: str) -> Poly:
        """A count of the launch, whatever the text has assigned to its name."""
        return self.extent(path, int(name == "num_pid_n")) if self.kind == "plane" else variable(name)

    def extent(self, path: Path, axis: int) -> Poly:
        """Workgroups along an axis of the launch."""
        if self.kind in ("line", "tiles"):
            return self.total if axis == 0 else poly(1)
        return variable(self.sides[axis]) if axis < len(self.sides) else poly(1)

    def _coordinate(self, path: Path, axis: int) -> Poly:
        if self.kind in ("line", "tiles"):
            return path.values[ROOT] if axis == 0 else poly(0)
        value = path.values[ROOT]
        for k in range(axis):
            value = path.divide(value, self.extent(path, k))[0]
        return path.divide(value, self.extent(path, axis))[1] if axis < len(self.sides) else poly(0)


def _product(values: list[Poly]) -> Poly:
    total = poly(1)
    for value in values:
        total = total * value
    return total


def _linear(digits: list[Poly], sides: list[Poly]) -> Poly:
    total, stride = poly(0), poly(1)
    for digit, side in zip(digits, sides, strict=True):
        total, stride = total + digit * stride, stride * side
    return total
