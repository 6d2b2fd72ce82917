"""The audit as a table of the page: every printed formula, checked as printed, replayed as run, and repaired."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from swizzle_benchmarks.validation.sources import kernel_modules

from .audit import Finding, audit, pair
from .formulas import FORMULAS
from .jobs import Job
from .searches import SCORES
from .settings import GPU, SMALL, Settings
from .style import pct, points, table

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


def jobs(settings: Settings) -> list[Job]:
    """Formulas of one kernel go together: they share a trace."""
    kernels = dict.fromkeys(one.kernel for one in FORMULAS)
    return [
        Job(
            name=_job(name),
            work=audited,
            about={
                "labels": [one.label for one in FORMULAS if one.kernel == name],
                "sizes": SMALL[name] if settings.quick else None,
                "gpu": GPU,
            },
            code=(*SCORES, *kernel_modules(name)),
            seconds=130.0 if name == "transpose" else 15.0,
        )
        for name in kernels
    ]


def _job(name: str) -> str:
    return f"audit of {name}"


def gather(settings: Settings, found: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Rows in the order of the formulas."""
    rows = {row["label"]: row for job in found.values() if "rows" in job for row in job["rows"] if "label" in row}
    return {
        "gpu": GPU,
        "quick": settings.quick,
        "replay": REPLAY,
        "rows": [rows[one.label] for one in FORMULAS],
    }


def words(data: Mapping[str, Any]) -> str:
    """Section of the page."""
    printed = [row for row in data["rows"] if "as run" not in row["label"]]
    broken = [row for row in printed if not row["bijective"]]
    heads = ("figure", "kernel, grid", "bijection", "holds on", "the paper", "tiles computed", "measured [%]",
             "simulated [%]", "repaired, simulated [%]", "gain of the repair [points]")  # fmt: skip
    rows = [
        [
            row["label"],
            f"`{row['kernel']}`, {row['grid']}",
            "yes" if row["bijective"] else "**no**",
            row["condition"],
            row["claim"],
            f"{row['tiles_computed']:,} of {row['tiles']:,}",
            pair(row["measured_launched_pct"], row["measured_pct"]),
            f"{pct(row['launched'])} → {pct(row['simulated'])}",
            pct(row["repaired"]),
            points(100 * (row["repaired"] - row["launched"])),
        ]
        for row in data["rows"]
    ]
    return "\n\n".join(
        [
            f"**{len(broken)} of the {len(printed)} printed formulas are no bijections** at the size they were "
            f"measured at. Simulated: {data['replay']} replay; that of what is no bijection is a raw schedule's, what "
            "the hardware did, not a score. Measured: public logs behind the paper. Formulas, counter-examples and "
            "repairs: [audit](../audit.md).",
            table(heads, rows, left=5),
        ]
    )
