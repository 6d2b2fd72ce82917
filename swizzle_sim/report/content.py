"""Texts of the report page, as plain strings for the template: no number is computed here, only formatted."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from swizzle_sim.base.release import version
from swizzle_sim.base.text import cut, gigabytes, joules, microseconds, percent, points
from swizzle_sim.hardware.agreement import Agreement, Comparison
from swizzle_sim.hardware.measurement import Measurement
from swizzle_sim.hardware.results import MEASUREMENTS
from swizzle_sim.hardware.runs import agreements_in
from swizzle_sim.language import Swizzle
from swizzle_sim.language.lattice import claim
from swizzle_sim.language.verdict import TESTED
from swizzle_sim.pricing.scores import Score
from swizzle_sim.report.spending import Spending
from swizzle_sim.search.history import Attempt
from swizzle_sim.search.ranking import Ranking
from swizzle_sim.workload.kernels import Kernel
from swizzle_sim.workload.price import CompiledKernel, RemapPrice
from xcd_model import Gpu, Time
from xcd_model.errors import SwizzleSimError

BEST = 5  # rows of the table
LONGEST_NAME = 120
LONGEST_MESSAGE = 600
LONGEST_CRITIQUE = 2000
LONGEST_SOURCE = 6000
LONGEST_CODE = 200_000  # characters of a kernel's file that the page carries
MOST = 300  # attempts listed; of more, the best and the first of the others
BEST_OF_MOST = 200


_OUTPUTS = {
    "bitwise": "equal bit for bit",
    "tolerance": "equal within tolerance",
    "differs": "differ: not counted",
    "failed": "failed",
    "unchecked": "not checked",
}


def best_rows(attempts: Sequence[Attempt], baseline: Score | None, ranking: Ranking) -> list[dict[str, str]]:
    """Rows of the table: the launch order, then the best attempts."""
    launched = attempts[0].verdict if attempts else {}
    rows = [] if baseline is None else [_row("–", "launch order", baseline, launched)]
    places = ranking.places(attempts)
    candidates = [attempt for attempt in ranking.order(attempts) if attempt.number != 0]
    front = {one.number for one in ranking.front(attempts)} if len(ranking.objectives) > 1 else set()
    shown = max(BEST, len(front & {one.number for one in candidates}))
    for attempt in candidates[:shown]:
        if attempt.score is not None:
            place = places[attempt.number]
            label = f"{place}, front" if attempt.number in front else place
            rows.append(_row(label, cut(attempt.name, LONGEST_NAME), attempt.score, attempt.verdict))
    return rows


def _row(place: str, name: str, score: Score, verdict: Mapping[str, Any]) -> dict[str, str]:
    return {
        "rank": place,
        "name": name,
        "l2": percent(score.l2_hit_rate),
        "mall": percent(score.mall_hit_rate),
        "hbm": gigabytes(score.hbm_bytes),
        "time": microseconds(score.time_us),
        "speedup": f"{score.speedup:.2f}",
        "distance": points(score.distance_to_bound),
        "energy": joules(score.energy_j),
        "domain": str(verdict.get("domain", "not recorded")),
    }


def cards(baseline: Score, best: Score, ranking: Ranking) -> list[dict[str, str]]:
    """Summary cards: label, value, and what to compare it with."""
    shown = _cards(baseline, best)
    if any(one.name == "energy" for one in ranking.objectives):
        was = f"from {joules(baseline.energy_j)} J; assumed rates, so only differences on one GPU mean anything"
        shown.append(_card("Energy", f"{joules(best.energy_j)} J", was))
    return shown


def _cards(baseline: Score, best: Score) -> list[dict[str, str]]:
    gained = f"{points(best.l2_hit_rate - baseline.l2_hit_rate)} points gained"
    below = f"no balanced bijection exceeds it; best is {points(best.distance_to_bound)} points below"
    was = f"from {microseconds(baseline.time_us)} µs; limited mostly by {best.limiter}"
    return [
        _card("L2 hit rate", f"{percent(baseline.l2_hit_rate)} → {percent(best.l2_hit_rate)}", gained),
        _card("Bound", percent(best.bound_l2_hit_rate), below),
        _card(
            "Predicted speedup", f"{best.speedup:.2f}×", "time in launch order over time of the best, both predicted"
        ),
        _card("Predicted time", f"{microseconds(best.time_us)} µs", was),
        _card(
            "HBM traffic", f"{gigabytes(best.hbm_bytes)} GB", f"from {gigabytes(baseline.hbm_bytes)} GB, read + written"
        ),
        _card(
            "Infinity Cache hit rate",
            f"{percent(baseline.mall_hit_rate)} → {percent(best.mall_hit_rate)}",
            "of the L2s' line fills; it may drop where better L2 hit rates leave fewer of them",
        ),
    ]


def _card(label: str, value: str, note: str) -> dict[str, str]:
    return {"label": label, "value": value, "note": note}


def price_rows(price: RemapPrice) -> list[dict[str, Any]]:
    """Rows of the table of what the remapping costs: as launched, as rewritten, and with the options offered."""
    compiled = [price.before, price.after, *([price.offered] if price.offered else [])]
    figures: list[tuple[str, Callable[[CompiledKernel], str]]] = [
        ("registers", lambda one: str(one.registers)),
        ("accumulation registers among them", lambda one: str(one.agprs)),
        ("scalar registers", lambda one: str(one.sgprs)),
        ("spilled", lambda one: str(one.spills)),
        ("LDS or shared memory of a workgroup [B]", lambda one: f"{one.lds_bytes:,}"),
        (f"workgroups that fit one {price.after.place}", lambda one: str(one.workgroups_per_cu)),
        ("global loads: count of bytes a lane", lambda one: ", ".join(f"{n} of {width}" for width, n in one.loads)),
        ("instructions before the loop", lambda one: f"{one.instructions_before_loop:,}"),
        ("code [B]", lambda one: f"{one.code_bytes:,}"),
    ]
    rows = [(name, [text(one) for one in compiled]) for name, text in figures]
    return [{"name": name, "values": values} for name, values in rows if set(values) - {"0", ""}]


def verdict_lines(verdict: Mapping[str, Any], num_xcds: int) -> list[str]:
    """Sentences on where a swizzle is a bijection."""
    here = "a bijection" if verdict.get("bijective") else "no bijection"
    tried = verdict.get("n_workgroups")
    lines = [f"At this grid with {num_xcds} XCDs: {here}" + (f"; all {tried} workgroups were tried." if tried else ".")]
    domain, status = str(verdict.get("domain", "not recorded")), str(verdict.get("status", TESTED))
    lines.append(f"Of all grids: {claim(status, domain, verdict.get('tested', 0), verdict.get('largest', 0))}.")
    if "tested" in verdict:
        lines.append(f"Grids and XCD counts tested: {verdict['tested']}; bijective on {verdict['passed']}.")
    if other := verdict.get("lattice_counterexample"):
        lines.append(f"First that fails: {cut(str(other.get('message', '')), LONGEST_MESSAGE)}")
    return lines


def gpu_facts(gpu: Gpu) -> list[dict[str, str]]:
    """Rows of the table of GPU facts."""
    return [
        {"key": key, "value": _value(fact.value), "status": fact.status, "source": fact.source}
        for key, fact in gpu.facts.items()
    ]


def versions() -> str:
    """Versions that the report is made with; those of the run itself are in the history."""
    found = [f"{name} {metadata.version(name)}" for name in ("numpy", "numba", "matplotlib")]
    return ", ".join([f"swizzle-sim {version()}", f"Python {platform.python_version()}", *found])


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int | float) else str(value)


RESOURCES = {
    "compute": "compute",
    "l2": "L2",
    "fabric": "fabric between L2 and memory side",
    "mall": "Infinity Cache",
    "hbm": "HBM",
    "power": "power: joules over watts",
}


def time_bars(before: Time, after: Time) -> list[dict[str, Any]]:
    """Time of each resource; the latency is what no resource accounts for."""
    longest = max(before.total_us, after.total_us) or 1.0
    rows = []
    for name, label in RESOURCES.items():
        if name not in before.by_resource_us and name not in after.by_resource_us:
            continue
        mine, its = before.by_resource_us.get(name, 0.0), after.by_resource_us.get(name, 0.0)
        rows.append(_bars(label, mine, its, longest))
    if before.latency_us or after.latency_us:
        rows.append(_bars("latency of the first load and the last store", before.latency_us, after.latency_us, longest))
    rows.append(_bars("whole kernel", before.total_us, after.total_us, longest))
    return rows


def _bars(name: str, before_us: float, after_us: float, longest_us: float) -> dict[str, Any]:
    """One resource: its time in launch order and under the best swizzle, with bars in percent of the longest."""
    before, after = (round(100 * us / longest_us, 2) for us in (before_us, after_us))
    texts = {"before_text": f"{microseconds(before_us)} µs", "after_text": f"{microseconds(after_us)} µs"}
    return {"name": name, "before": before, "after": after, **texts}


def listed(attempts: Sequence[Attempt], ranking: Ranking) -> list[Attempt]:
    """Attempts to list, in the order made."""
    if len(attempts) <= MOST:
        return list(attempts)
    best = ranking.order(attempts)[:BEST_OF_MOST]
    chosen = {one.number for one in best}
    others = [one for one in attempts if one.number not in chosen][: MOST - len(best)]
    return sorted([*best, *others], key=lambda one: one.number)


def attempt_row(one: Attempt, spending: Spending) -> dict[str, Any]:
    """Verdict, critique, cost and text of an attempt; ``outcome`` is a class of the style sheet."""
    spent = spending.of(one.number)
    refused = one.score is None and not one.verdict.get("bijective", False)
    return {
        "number": one.number,
        "name": cut(one.name, LONGEST_NAME),
        "proposer": cut(one.proposer, LONGEST_NAME),
        "source": cut(one.source, LONGEST_SOURCE),
        "outcome": "scored" if one.score else "refused" if refused else "unscored",
        "verdict": _verdict(one, refused),
        "l2": percent(one.score.l2_hit_rate) if one.score else "",
        "time": f"{microseconds(one.score.time_us)} µs" if one.score else "",
        "critique": cut(one.critique, LONGEST_CRITIQUE),
        "cost": f"{_duration(one.cost_ms)}{'; ' + spent if spent else ''}",
    }


def _verdict(one: Attempt, refused: bool) -> str:
    code, domain = one.verdict.get("code", ""), one.verdict.get("domain", "not recorded")
    said = "refused" if refused else f"bijection: {domain}"
    if one.verdict.get("bijective", False) is None:
        said = "undecided"
    return f"{said} ({code})" if code and code != "scored" else said


def _duration(cost_ms: float) -> str:
    return f"{cost_ms / 1e3:.1f} s" if cost_ms >= 1000 else f"{cost_ms:.1f} ms"


def counts(attempts: Sequence[Attempt]) -> dict[str, Any]:
    """How the attempts ended."""
    none = [a for a in attempts if a.score is None]
    refused = sum(not a.verdict.get("bijective", False) for a in none)
    return {
        "all": len(attempts),
        "scored": len(attempts) - len(none),
        "refused": refused,
        "unscored": len(none) - refused,
    }


def measured_in(folder: Path) -> tuple[list[dict[str, Any]], str]:
    """Agreement of every result stored with a run, and what is wrong with them if they cannot be used."""
    if not any((folder / MEASUREMENTS).glob("*.json")):
        return [], ""
    try:
        return [_measured(one) for one in agreements_in(folder)], ""
    except SwizzleSimError as error:
        return [], str(error)


def _measured(found: Agreement) -> dict[str, Any]:
    """One result of hardware and its predictions, the launch order first."""
    names = {one.candidate: one.name for one in found.measurements}
    return {
        "kind": found.kind,
        "machine": str(found.result["machine"].get("name", "an unnamed GPU")),
        "replay": str(found.manifest["replay"]),
        "rows": [_measured_row(one, found.predicted[one.candidate] or {}) for one in found.measurements],
        "sentences": [_sentence(one, names) for one in found.comparisons],
        "doubts": list(dict.fromkeys(f"{one.name}: {doubt}" for one in found.measurements for doubt in one.doubts)),
    }


def _measured_row(one: Measurement, score: Mapping[str, Any]) -> dict[str, str]:
    return {
        "name": cut(one.name, LONGEST_NAME),
        "outputs": _OUTPUTS.get(one.right, one.right),
        "l2": _or_dash(percent, score.get("l2_hit_rate")),
        "l2_measured": _or_dash(percent, one.l2_hit_rate),
        "reads": _or_dash(gigabytes, score.get("hbm_read_bytes")),
        "reads_measured": _or_dash(gigabytes, one.read_bytes),
        "time": _or_dash(microseconds, score.get("time_us")),
        "time_measured": _or_dash(microseconds, one.time_cold_us),
    }


def _or_dash(said: Callable[[Any], str], value: float | None) -> str:
    return "–" if value is None else said(value)


def _sentence(one: Comparison, names: Mapping[str, str]) -> str:
    over = f"over {len(one.candidates)} of {len(names)} orders."
    if one.nothing_to_rank:
        return f"{one.figure.name}: {one.nothing_to_rank}, {over}"
    rho = "" if one.rank_correlation is None else f"rank correlation {one.rank_correlation:+.2f}, "
    winner = "the same winner" if one.same_winner else "another winner"
    return f"{one.figure.name}: {rho}{winner}, {over}"


def rewritten(kernel: Kernel, source: str, gpu: Gpu, folder: Path) -> dict[str, Any]:
    """Rewrite the kernel of a run as ``swizzle-sim rewrite`` does, without running it; or say why not.

    ``checked``: a file with this text lies in the run folder, where it is written only after it was checked.
    """
    if kernel.launch is None:
        return {"why_not": f"{kernel.name} comes without the launch of a Triton kernel, as a trace file does"}
    from swizzle_sim.rewrite.kernel import rewrite_kernel  # noqa: PLC0415  (LibCST is slow to import)

    try:
        found = rewrite_kernel(
            kernel.launch,
            Swizzle.parse(source),
            grid=kernel.grid,
            num_xcds=gpu.xcds,
            sizes=kernel.problem,
            lattice=kernel.lattice,
            at="program" if kernel.programs is None else "tile",
        )
    except SwizzleSimError as error:
        return {"why_not": str(error)}
    name = f"{found.path.stem}_swizzled.py"
    if len(found.text) > LONGEST_CODE:
        return {"why_not": f"{found.path.name} is too long to show here: swizzle-sim rewrite writes it"}
    guard = found.guarded.condition
    where = f"where {guard}, and the launch order elsewhere" if guard else "on every grid"
    return {
        "why_not": "",
        "name": name,
        "diff": _diff_lines(found.diff(name)),
        "text": found.text.decode("utf-8", "replace"),
        "checked": _is_there(folder / name, found.text),
        "note": f"The {found.at}'s id is remapped {where}.",
    }


def _is_there(path: Path, text: bytes) -> bool:
    try:
        return path.read_bytes() == text
    except OSError:
        return False


def _diff_lines(diff: str) -> list[tuple[str, str]]:
    """Lines of a unified diff, each with its class of the style sheet."""
    styles = {"+": "added", "-": "taken", "@": "place"}
    lines = diff.splitlines()
    return [(line, "place" if i < 2 else styles.get(line[:1], "same")) for i, line in enumerate(lines)]
