"""How a verdict is printed."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from swizzle_sim.swizzle import Swizzle, Verdict


def print_verdict(candidate: Swizzle, grid: str, num_xcds: int, verdict: Verdict) -> None:
    """Say whether a candidate is a bijection here, and where else."""
    from swizzle_sim.cli.output import console

    out = console(wide=True)
    answer = "a bijection" if verdict.bijective else "NOT a bijection"
    out.print(f"{candidate.name}: {answer} at grid {grid}, {num_xcds} XCDs", markup=False)
    if verdict.counterexample:
        out.print(f"  {verdict.counterexample.message}", markup=False)
    out.print(
        f"  valid: {verdict.domain} ({verdict.passed} of {verdict.tested} grids and XCD counts pass)",
        markup=False,
    )
    if not verdict.complete:
        out.print("  other grids took too long and were cut: nothing is said of the rest", markup=False)
    if verdict.bijective and verdict.lattice_counterexample:
        out.print(f"  elsewhere: {verdict.lattice_counterexample.message}", markup=False)
