"""`Result` of one kernel, `Suite` of many, and their table: the same rows for the terminal, CSV and Markdown."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from swizzle_sim.language.lattice import unconditional
from swizzle_sim.pricing.scores import Score
from swizzle_sim.search.ranking import default_objectives, times_note

COLUMNS = (
    *("kernel", "best family", "launch order [%]", "best [%]", "bound [%]", "gain [pt]", "launch order [µs]"),
    *("best [µs]", "speedup", "valid where", "launch", "tried"),
)
CSV_COLUMNS = (
    *("kernel", "sizes", "grid", "gpu", "kind", "replay", "baseline_l2_hit_rate", "best_family", "best_domain"),
    *("best_l2_hit_rate", "bound_l2_hit_rate", "baseline_time_us", "best_time_us", "speedup", "baseline_hbm_bytes"),
    *("best_hbm_bytes", "launches", "launch", "steady", "tried", "known", "seconds"),
)


@dataclass(frozen=True, kw_only=True)
class Result:
    """What was found for one kernel."""

    kernel: str
    problem: Mapping[str, int]
    grid: str
    launches: int  # how often a run of the kernel launches it; `Score.launch` says which one was counted
    baseline: Score  # of the launch order
    # best family, its text, and where it is a bijection; the identity where no family beats the launch order
    best_name: str
    best_source: str
    best_domain: str
    best: Score
    tried: int  # distinct permutations replayed, the launch order included
    known: int  # combinations of families and parameters that there are for the kernel
    seconds: float  # [s]: that the kernel took

    @property
    def at_bound(self) -> bool:
        """Nothing can be better."""
        return self.best.l2_hit_rate >= self.best.bound_l2_hit_rate  # in hits

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {**asdict(self), "baseline": self.baseline.as_dict(), "best": self.best.as_dict()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Result:
        """Inverse of `as_dict`."""
        scores = {name: Score.from_dict(values[name]) for name in ("baseline", "best")}
        return cls(**{**values, **scores})


@dataclass(frozen=True, eq=False)
class Suite:
    """A finished run over kernels."""

    folder: Path
    gpu: str
    replay: str
    results: tuple[Result, ...]


def cells(found: Result) -> list[str]:
    """Row of `COLUMNS`."""
    base, best = found.baseline, found.best
    return [
        found.kernel,
        "none: launch order" if found.best_name == "identity" else found.best_name,
        f"{100 * base.l2_hit_rate:.2f}",
        f"{100 * best.l2_hit_rate:.2f}",
        f"{100 * best.bound_l2_hit_rate:.2f}",
        f"{100 * (best.l2_hit_rate - base.l2_hit_rate):+.2f}",
        f"{base.time_us:.1f}",
        f"{best.time_us:.1f}",
        f"{best.speedup:.3f}",
        found.best_domain,
        launch_text(found),
        f"{found.tried} of {found.known + 1}" if not found.at_bound else f"{found.tried}: at the bound",
    ]


def launch_text(found: Result) -> str:
    """Which launch was counted, and whether more would count the same."""
    if found.launches == 1:
        return "1"
    return f"{found.best.launch} of {found.launches}, {'steady' if found.best.steady else 'not steady'}"


def notes(suite: Suite) -> list[str]:
    """What the columns mean."""
    main = default_objectives(suite.gpu, suite.replay)[0]
    lines = [
        f"Simulated, {suite.replay} replay on {suite.gpu}; hit rates in requests, as TCC_HIT and TCC_MISS count.",
        f"Best by {main.spoken}. {times_note(suite.gpu, suite.replay)}",
        "tried: distinct permutations replayed, of all combinations of families and parameters (many give the same "
        "permutation); a kernel is finished once a candidate reaches the bound, which no balanced bijection exceeds.",
    ]
    if any(found.launches > 1 for found in suite.results):
        lines.append(
            "launch: a kernel that is launched repeatedly is replayed with warm caches until a launch counts as "
            "the one before it (steady); that launch is in the table."
        )
    return lines


def suite_markdown(suite: Suite) -> str:
    """Markdown table with its notes."""
    rows = [cells(found) for found in suite.results]
    for row in rows:
        row[1] = row[1] if row[1].startswith("none") else f"`{row[1]}`"
        row[9] = row[9] if unconditional(row[9]) else f"`{row[9]}`"
    lines = [_markdown_row(COLUMNS), _markdown_row(["---", "---", *["---:"] * 7, "---", "---", "---:"])]
    lines += [_markdown_row(row) for row in rows]
    return "\n".join([*lines, "", *(f"- {note}" for note in notes(suite))]) + "\n"


def _markdown_row(row: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |"


def suite_csv(suite: Suite) -> str:
    """CSV with a header; rates are 0 to 1."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    for found in suite.results:
        base, best = found.baseline, found.best
        writer.writerow(
            [
                found.kernel,
                " ".join(f"{name}={size}" for name, size in found.problem.items()),
                found.grid,
                suite.gpu,
                "simulated",
                suite.replay,
                *(base.l2_hit_rate, found.best_name, found.best_domain, best.l2_hit_rate, best.bound_l2_hit_rate),
                *(base.time_us, best.time_us, best.speedup, base.hbm_bytes, best.hbm_bytes),
                *(found.launches, best.launch, best.steady, found.tried, found.known, found.seconds),
            ]
        )
    return stream.getvalue()
