"""Tables for notebooks and IPython shells, in place of long reprs: what a noun is, in a caption and rows of text.

Printers are registered by the name of a class, so nothing is imported for them before the first one is shown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from swizzle_sim.base.text import percent

if TYPE_CHECKING:
    from swizzle_sim.language import Swizzle, Verdict
    from swizzle_sim.pricing.scores import Score
    from swizzle_sim.search.loop import Run
    from swizzle_sim.workload.kernels import Kernel
    from xcd_model import Gpu

LAUNCHED = "launch order"
_CELL = "text-align:left;vertical-align:top;padding:0.15em 0.8em 0.15em 0"
SHOWN_ATTEMPTS = 5
GPU_KEYS = (
    *("xcds", "cus_per_xcd", "clock_mhz", "l1.size_bytes", "l2.size_bytes", "l2.line_bytes", "l2.ways"),
    *("mall.size_bytes", "mall.bandwidth_gbps", "hbm.bandwidth_gbps"),
)


@dataclass(frozen=True)
class Table:
    """A caption, a block of code that may be empty, a header that may be empty, and rows; nothing in it is markup."""

    caption: str
    rows: Sequence[Sequence[str]] = ()
    header: Sequence[str] = ()
    code: str = ""


def of_score(score: Score) -> Table:
    """Rates, bytes and time, and the bound of the rate."""
    rows = [
        ("L2 hit rate", f"{percent(score.l2_hit_rate)}, of at most {percent(score.bound_l2_hit_rate)}"),
        ("L2 requests", f"{score.l2_requests:,}, of which {score.l2_misses:,} missed"),
        ("HBM", f"{score.hbm_read_bytes / 2**20:,.1f} MiB read, {score.hbm_write_bytes / 2**20:,.1f} MiB written"),
        ("time", f"{score.time_us:,.1f} µs, limited by {score.limiter}"),
        ("speedup", f"{score.speedup:.3f} over the launch order"),
    ]
    if score.mall_hit_rate == score.mall_hit_rate:
        rows.insert(2, ("Infinity Cache hit rate", percent(score.mall_hit_rate)))
    return Table("Score (simulated)", rows)


def of_verdict(verdict: Verdict) -> Table:
    """Yes or no, the domain, and what shows it."""
    from swizzle_sim.language.lattice import claim_of  # noqa: PLC0415 - only a notebook shows it

    rows = [("bijection at this grid", "yes" if verdict.bijective else "NO"), ("of all grids", claim_of(verdict))]
    rows.append(("tested", f"{verdict.passed} of {verdict.tested} grids and XCD counts passed"))
    for found in (verdict.counterexample, verdict.lattice_counterexample):
        if found is not None:
            rows.append(("counter-example", found.message))
            break
    return Table("Verdict (exhaustive)", rows)


def of_swizzle(swizzle: Swizzle) -> Table:
    """Its text."""
    return Table(f"Swizzle {swizzle.name}" if swizzle.name else "Swizzle", code=swizzle.source.strip())


def of_kernel(kernel: Kernel) -> Table:
    """What it computes, at which sizes, and what its workgroups share."""
    sizes = ", ".join(f"{name}={value}" for name, value in kernel.problem.items())
    rows = [("computes", kernel.summary), ("sizes", sizes), ("grid", str(kernel.grid))]
    if kernel.programs:
        rows.append(("persistent programs", f"{kernel.programs:,}"))
    rows += [("work", f"{kernel.flops:.3g} flops in {kernel.dtype}"), ("shares", kernel.sharing.replace("\n", " "))]
    return Table(f"Kernel {kernel.name}", [row for row in rows if row[1]])


def of_gpu(gpu: Gpu) -> Table:
    """Its main numbers, each with how it is known."""
    rows = []
    for key in GPU_KEYS:
        part, _, name = key.rpartition(".")
        owner = getattr(gpu, part) if part else gpu
        if owner is None:
            continue
        fact = gpu.facts.get(key)
        known = (fact.status, fact.source) if fact else ("changed", "no source: this GPU does not exist")
        rows.append((key, _value(key, getattr(owner, name)), *known))
    return Table(f"{gpu.title} ({gpu.name})", rows, ("number", "value", "status", "source"))


def of_run(run: Run) -> Table:
    """The launch order and the best attempts."""
    shown = {attempt.number: attempt for attempt in (*run.ranked[:SHOWN_ATTEMPTS], run.baseline)}
    rows = [
        (LAUNCHED if a.number == 0 else a.name, percent(a.score.l2_hit_rate), f"{a.score.speedup:.3f}", a.proposer)
        for a in shown.values()
        if a.score is not None
    ]
    tried, valid = len(run.attempts), len(run.ranked)
    caption = f"Run of {tried:,} attempts, {valid:,} scored (simulated)"
    return Table(caption, rows, ("attempt", "L2 hit rate", "speedup", "proposer"))


TABLES: Mapping[tuple[str, str], Callable[[Any], Table]] = {
    ("swizzle_sim.pricing.scores", "Score"): of_score,
    ("swizzle_sim.language.verdict", "Verdict"): of_verdict,
    ("swizzle_sim.language.swizzle", "Swizzle"): of_swizzle,
    ("swizzle_sim.workload.kernels", "Kernel"): of_kernel,
    ("xcd_model.spec.gpu", "Gpu"): of_gpu,
    ("swizzle_sim.search.loop", "Run"): of_run,
}


def _value(key: str, value: Any) -> str:
    if key.endswith("size_bytes") and value >= 2**10:
        return f"{value / 2**20:g} MiB" if value >= 2**20 else f"{value / 2**10:g} KiB"
    return f"{value:,}"


def register(shell: Any) -> None:
    """Teach an IPython shell to show `Score`, `Verdict`, `Swizzle`, `Kernel`, `Gpu` and `Run`."""
    formatters = shell.display_formatter.formatters
    for (module, name), table in TABLES.items():
        formatters["text/html"].for_type_by_name(module, name, lambda noun, of=table: html(of(noun)))
        formatters["text/plain"].for_type_by_name(
            module, name, lambda noun, printer, cycle, of=table: printer.text(text(of(noun)))
        )


def html(table: Table) -> str:
    """HTML of a table; everything in it is escaped, since texts of candidates may come from anywhere."""
    parts = [f"<p><strong>{escape(table.caption)}</strong></p>"]
    if table.code:
        parts.append(f"<pre>{escape(table.code)}</pre>")
    lines = []
    if table.header:
        lines.append("".join(f'<th style="{_CELL}">{escape(cell)}</th>' for cell in table.header))
    for row in table.rows:
        lines.append("".join(f'<td style="{_CELL}">{escape(cell)}</td>' for cell in row))
    if lines:
        parts.append("<table>" + "".join(f"<tr>{line}</tr>" for line in lines) + "</table>")
    return "".join(parts)


def text(table: Table) -> str:
    """The same in characters, for shells."""
    grid = [row for row in (table.header, *table.rows) if row]
    widths = [max(len(row[at]) for row in grid) for at in range(len(grid[0]) - 1)] if grid else []
    lines = ["  " + "  ".join([*map(str.ljust, row[:-1], widths), row[-1]]) for row in grid]
    return "\n".join([table.caption, *(f"    {line}" for line in table.code.splitlines()), *lines])
