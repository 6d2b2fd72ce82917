"""Some of the paper's formulas through the audit, as figures that can be kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.paper.audit import Finding, audit
from benchmarks.paper.formulas import FORMULAS

REPLAY = "lockstep"


def audited(about: Mapping[str, Any], folder: Path, say: Callable[[str], None]) -> dict[str, Any]:
    """Rows of the formulas labelled ``about["labels"]``, at ``about["sizes"]`` where that is given."""
    chosen = [one for one in FORMULAS if one.label in about["labels"]]
    if about["sizes"]:
        chosen = [replace(one, sizes=about["sizes"]) for one in chosen]
    return {"rows": [_row(one) for one in audit(chosen, about["gpu"], say)]}


def _row(one: Finding) -> dict[str, Any]:
    formula, verdict = one.formula, one.verdict
    return {
        "label": formula.label,
        "kernel": formula.kernel,
        "grid": one.grid,
        "bijective": verdict.bijective,
        "tiles_computed": verdict.distinct_tiles,
        "tiles": verdict.n_workgroups,
        "condition": formula.condition,
        "claim": formula.claim,
        "measured_launched_pct": formula.baseline_pct,
        "measured_pct": formula.measured_pct,
        "launched": one.baseline.l2_hit_rate,
        "simulated": one.simulated,
        "repaired": one.repair.l2_hit_rate,
        "repaired_by": formula.repaired_by,
        "repair_domain": one.repair_verdict.domain,
        "bound": one.baseline.bound_l2_hit_rate,
    }
