"""What ``score`` tells of the remap that a kernel holds already: what it is worth, and how to put it off."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from swizzle_sim.capture.own_remap import OwnRemap
    from swizzle_sim.scores import Score
    from swizzle_sim.scoring import Scorer


def remap_and_score_without(scorer: Scorer) -> tuple[OwnRemap, Score] | None:
    """Remap of a user's kernel, and the score without it."""
    from swizzle_sim.capture.own_remap import own_remap

    found = own_remap(scorer.kernel, scorer.gpu.xcds)
    return (found, scorer.score_order(found.without, baseline_us=scorer.baseline.time_us)) if found else None


def print_own_remap(scorer: Scorer) -> None:
    """Print what a remap is worth that the kernel holds already."""
    from swizzle_sim.cli.output import console

    inside, before = remap_and_score_without(scorer), scorer.baseline
    if inside is None:
        return
    found, without = inside
    console(wide=True).print(
        f"{found}: L2 hit rate {100 * before.l2_hit_rate:.2f} % with it, {100 * without.l2_hit_rate:.2f} % without; "
        f"{before.time_us:.1f} and {without.time_us:.1f} µs. The candidate is stacked on it.",
        markup=False,
    )
    if found.constants:
        given = " ".join(f"{name}={value}" for name, value in found.constants.items())
        console(wide=True).print(f"  in its place: swizzle-sim score {scorer.kernel.file} {given} ...", markup=False)
