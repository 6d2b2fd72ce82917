"""The audit as a table of the page: every printed formula, checked as printed, replayed as run, and repaired."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.paper.auditing import REPLAY, audited
from benchmarks.paper.formulas import FORMULAS
from benchmarks.paper.jobs import Job
from benchmarks.paper.searches import SCORES, suite_files
from benchmarks.paper.settings import GPU, SMALL, Settings


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
            code=SCORES,
            files=suite_files(name),
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
