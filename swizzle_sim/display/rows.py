"""What a noun says of itself in a notebook: a caption and rows of name and value, as plain text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from swizzle_sim.kernels import Kernel
    from swizzle_sim.scoring import Score
    from swizzle_sim.search import Run
    from swizzle_sim.swizzle import Swizzle, Verdict
    from xcd_model import Gpu

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
    """Rates, bytes and time, with the bound beside the rate."""
    rows = [
        ("L2 hit rate", f"{_pct(score.l2_hit_rate)}, of at most {_pct(score.bound_l2_hit_rate)}"),
        ("L2 requests", f"{score.l2_requests:,}, of which {score.l2_misses:,} missed"),
        ("HBM", f"{score.hbm_read_bytes / 2**20:,.1f} MiB read, {score.hbm_write_bytes / 2**20:,.1f} MiB written"),
        ("time", f"{score.time_us:,.1f} µs, limited by {score.limiter}"),
        ("speedup", f"{score.speedup:.3f} over the order as launched"),
    ]
    if score.mall_hit_rate == score.mall_hit_rate:
        rows.insert(2, ("Infinity Cache hit rate", _pct(score.mall_hit_rate)))
    return Table("Score (simulated)", rows)


def of_verdict(verdict: Verdict) -> Table:
    """Yes or no, the domain, and what shows it."""
    rows = [("bijection at this grid", "yes" if verdict.bijective else "NO"), ("where", verdict.domain)]
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
    """The baseline and the best attempts."""
    shown = {attempt.number: attempt for attempt in (*run.ranked[:SHOWN_ATTEMPTS], run.baseline)}
    rows = [
        ("as launched" if a.number == 0 else a.name, _pct(a.score.l2_hit_rate), f"{a.score.speedup:.3f}", a.proposer)
        for a in shown.values()
        if a.score is not None
    ]
    tried, valid = len(run.attempts), len(run.ranked)
    caption = f"Run of {tried:,} attempts, {valid:,} scored (simulated)"
    return Table(caption, rows, ("attempt", "L2 hit rate", "speedup", "proposer"))


TABLES: Mapping[tuple[str, str], Callable[[Any], Table]] = {
    ("swizzle_sim.scoring", "Score"): of_score,
    ("swizzle_sim.swizzle.verdict", "Verdict"): of_verdict,
    ("swizzle_sim.swizzle.swizzle", "Swizzle"): of_swizzle,
    ("swizzle_sim.kernels", "Kernel"): of_kernel,
    ("xcd_model.spec.gpu", "Gpu"): of_gpu,
    ("swizzle_sim.search", "Run"): of_run,
}


def _pct(rate: float) -> str:
    return f"{100 * rate:.1f} %"


def _value(key: str, value: Any) -> str:
    if key.endswith("size_bytes") and value >= 2**10:
        return f"{value / 2**20:g} MiB" if value >= 2**20 else f"{value / 2**10:g} KiB"
    return f"{value:,}"
