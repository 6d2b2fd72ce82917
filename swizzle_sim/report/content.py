"""What the report page says of a run and cannot be read off one noun: rows to show, sentences, the rewritten kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from swizzle_sim.base.text import cut
from swizzle_sim.hardware.agreement import Agreement
from swizzle_sim.hardware.results import MEASUREMENTS
from swizzle_sim.hardware.runs import agreements_in
from swizzle_sim.language import Swizzle
from swizzle_sim.language.lattice import claim
from swizzle_sim.language.verdict import TESTED
from swizzle_sim.pricing.scores import Score
from swizzle_sim.rewrite.kernel import rewrite_kernel
from swizzle_sim.search.advice import RESOURCES
from swizzle_sim.search.history import Attempt
from swizzle_sim.search.ranking import Ranking
from swizzle_sim.workload.kernels import Kernel
from xcd_model import Gpu, Time
from xcd_model.errors import SwizzleSimError

BEST = 5  # rows of the table
LONGEST_MESSAGE = 600
LONGEST_CODE = 200_000  # characters of a kernel's file that the page carries
MOST = 300  # attempts listed; of more, the best and the first of the others
BEST_OF_MOST = 200


class Row(NamedTuple):
    """Row of the table of the best."""

    rank: str
    name: str
    score: Score
    verdict: Mapping[str, Any]


def best_rows(attempts: Sequence[Attempt], baseline: Score, ranking: Ranking) -> list[Row]:
    """Rows of the table: the launch order, then the best attempts."""
    rows = [Row("–", "launch order", baseline, attempts[0].verdict)]
    places = ranking.places(attempts)
    candidates = [attempt for attempt in ranking.order(attempts) if attempt.number != 0]
    front = {one.number for one in ranking.front(attempts)} if len(ranking.objectives) > 1 else set()
    shown = max(BEST, len(front & {one.number for one in candidates}))
    for one in candidates[:shown]:
        if one.score is not None:
            place = f"{places[one.number]}, front" if one.number in front else places[one.number]
            rows.append(Row(place, one.name, one.score, one.verdict))
    return rows


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


def time_bars(before: Time, after: Time) -> list[tuple[str, float, float]]:
    """Time of each resource [us] in launch order and under the best; the latency is what no resource accounts for."""
    times = (before.by_resource_us, after.by_resource_us)
    rows = [
        (label, times[0].get(name, 0.0), times[1].get(name, 0.0))
        for name, label in RESOURCES.items()
        if name in times[0] or name in times[1]
    ]
    if before.latency_us or after.latency_us:
        rows.append(("latency of the first load and the last store", before.latency_us, after.latency_us))
    return [*rows, ("whole kernel", before.total_us, after.total_us)]


def listed(attempts: Sequence[Attempt], ranking: Ranking) -> list[Attempt]:
    """Attempts to list, in the order made."""
    if len(attempts) <= MOST:
        return list(attempts)
    best = ranking.order(attempts)[:BEST_OF_MOST]
    chosen = {one.number for one in best}
    others = [one for one in attempts if one.number not in chosen][: MOST - len(best)]
    return sorted([*best, *others], key=lambda one: one.number)


def outcome(one: Attempt) -> str:
    """How an attempt ended: a class of the style sheet."""
    return "scored" if one.score else "unscored" if one.verdict.get("bijective", False) else "refused"


def verdict_of(one: Attempt) -> str:
    """Verdict of an attempt in a few words."""
    code, found = one.verdict.get("code", ""), one.verdict.get("bijective", False)
    said = "refused" if outcome(one) == "refused" else f"bijection: {one.verdict.get('domain', 'not recorded')}"
    if found is None:
        said = "undecided"
    return f"{said} ({code})" if code and code != "scored" else said


def counts(attempts: Sequence[Attempt]) -> dict[str, int]:
    """How the attempts ended."""
    ended = [outcome(one) for one in attempts]
    return {"all": len(ended), **{one: ended.count(one) for one in ("scored", "refused", "unscored")}}


def measured_in(folder: Path) -> tuple[list[Agreement], str]:
    """Agreement of every result stored with a run, and what is wrong with them if they cannot be used."""
    if not any((folder / MEASUREMENTS).glob("*.json")):
        return [], ""
    try:
        return agreements_in(folder), ""
    except SwizzleSimError as error:
        return [], str(error)


def rewritten(kernel: Kernel, source: str, gpu: Gpu, folder: Path) -> dict[str, Any]:
    """The rewritten kernel of a run: the file that was checked and written there, else its text alone, or why not."""
    if kernel.launch is None:
        return {"why_not": f"{kernel.name} comes without the launch of a Triton kernel, as a trace file does"}
    remap: dict[str, Any] = {"num_xcds": gpu.xcds, "sizes": kernel.problem, "lattice": kernel.lattice}
    at = "program" if kernel.programs is None else "tile"
    try:
        found = rewrite_kernel(kernel.launch, Swizzle.parse(source), grid=kernel.grid, at=at, **remap)
    except SwizzleSimError as error:
        return {"why_not": str(error)}
    name = f"{found.path.stem}_swizzled.py"
    if is_written := (folder / name).is_file():
        found = replace(found, text=(folder / name).read_bytes())
    if len(found.text) > LONGEST_CODE:
        return {"why_not": f"{found.path.name} is too long to show here: swizzle-sim rewrite writes it"}
    guard = found.guarded.condition
    where = f"where {guard}, and the launch order elsewhere" if guard else "on every grid"
    note = "" if is_written else f"The {found.at}'s id is remapped {where}."
    text = found.text.decode("utf-8", "replace")
    styles = {"+": "added", "-": "taken", "@": "place"}  # classes of the style sheet
    lines = enumerate(found.diff(name).splitlines())
    diff = [(line, "place" if i < 2 else styles.get(line[:1], "same")) for i, line in lines]
    return {"why_not": "", "name": name, "diff": diff, "text": text, "note": note}
