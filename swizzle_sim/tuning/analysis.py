"""`findings`: what of a launch is small, crowded, starved or uneven, and which configurations that suggests first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from swizzle_sim.pricing.scores import Score
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.search.ranking import UNEVEN
from swizzle_sim.tuning.template import Template, Values

SMALL = 16  # workgroups a slot from which larger blocks cost no parallelism
MOST_STEPS = 4  # by which a suggestion halves blocks


@dataclass(frozen=True)
class Finding:
    """What is wrong with a launch, in words, and configurations to try first."""

    name: str
    words: str
    values: tuple[Values, ...] = ()


def findings(template: Template, scorer: Scorer, score: Score) -> list[Finding]:
    """Findings on the kernel as it is, the worst first."""
    workgroups, gpu = scorer.kernel.programs or scorer.kernel.grid.num_pids, scorer.gpu
    slots = gpu.cus * scorer.occupancy
    found = []
    if workgroups < gpu.cus:
        halved = tuple(_halved(template))
        found.append(Finding("starved", f"{workgroups} workgroups on {gpu.cus} CUs: smaller tiles", halved))
    elif workgroups > SMALL * slots:
        larger = tuple(_scaled(template, 2))[:MOST_STEPS]
        found.append(Finding("small", f"{workgroups} workgroups on {slots} slots: larger tiles", larger))
    balance = score.balance
    if balance is not None and balance.over_ideal > UNEVEN and workgroups >= gpu.cus:
        words = f"CUs end at {balance.over_ideal:.2f} times the ideal: tiles of another size"
        found.append(Finding("uneven", words, tuple(_scaled(template, 0.5))[:MOST_STEPS]))
    if scorer.occupancy == 1 and workgroups >= 2 * gpu.cus:
        words = "one workgroup a CU: fewer registers or less LDS"
        found.append(Finding("crowded", words, tuple(_lighter(template))))
    return found


def _blocks(values: Mapping[str, int], template: Template) -> list[str]:
    """Constants that are blocks, the largest first."""
    return sorted((one for one in template.constants if "GROUP" not in one), key=lambda one: -values[one])


def _halved(template: Template) -> Iterator[Values]:
    """Configurations whose largest block is halved, and the next, with half the warps once the tile is a quarter."""
    values = template.start
    for step in range(MOST_STEPS):
        blocks = [one for one in _blocks(values, template) if values[one] // 2 in template.ranges[one]]
        if not blocks:
            return
        values = {**values, blocks[0]: values[blocks[0]] // 2}
        if step % 2:
            yield values
            fewer = values["num_warps"] // 2
            if fewer in template.ranges.get("num_warps", ()):
                yield {**values, "num_warps": fewer}


def _scaled(template: Template, factor: float) -> Iterator[Values]:
    """Configurations with one block scaled."""
    start = template.start
    for name in _blocks(start, template):
        if (other := int(start[name] * factor)) in template.ranges[name]:
            yield {**start, name: other}


def _lighter(template: Template) -> Iterator[Values]:
    """Configurations that take fewer registers or less LDS."""
    start = template.start
    for name, other in (("num_warps", 2 * start.get("num_warps", 0)), ("num_stages", start.get("num_stages", 0) - 1)):
        if other in template.ranges.get(name, ()):
            yield {**start, name: other}
    yield from list(_scaled(template, 0.5))[:1]
