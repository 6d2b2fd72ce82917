"""The page of a run, its pictures and its best swizzle, from its history alone: gathered, filled in and written."""

from __future__ import annotations

import base64
import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from swizzle_sim.base import text as written
from swizzle_sim.base.atomic_write import write_whole
from swizzle_sim.base.text import cut, percent, visible
from swizzle_sim.hardware.agreement import Agreement
from swizzle_sim.hardware.results import MEASUREMENTS
from swizzle_sim.hardware.runs import agreements_in
from swizzle_sim.language import Swizzle
from swizzle_sim.language.emit import emit_triton
from swizzle_sim.language.emit_hip import emit_hip
from swizzle_sim.language.lattice import claim
from swizzle_sim.language.verdict import TESTED
from swizzle_sim.pricing.access_patterns import uncoalesced
from swizzle_sim.pricing.scores import Score
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.report import pictures
from swizzle_sim.report.bottleneck import why_better
from swizzle_sim.report.pictures import NAMES, Drawing, Replayed, most_misses, slider_data
from swizzle_sim.report.rank_stability import stored_lines
from swizzle_sim.report.spending import Spending, spending_of
from swizzle_sim.rewrite.kernel import rewrite_kernel
from swizzle_sim.search.advice import RESOURCES, advise_run
from swizzle_sim.search.history import Attempt, History
from swizzle_sim.search.ranking import Ranking, ranking_of, times_note, times_rank
from swizzle_sim.search.recorded import recorded_scorer
from swizzle_sim.workload.kernels import Kernel
from xcd_model import Gpu, Time
from xcd_model.errors import RunError, SwizzleSimError

if TYPE_CHECKING:
    from markupsafe import Markup

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


LONGEST_COLOURED = 60_000  # characters that are coloured: a lexer takes a microsecond or two for each
VALUES = ("percent", "points", "gigabytes", "joules", "microseconds")  # filters of the template
CLASSES = {
    "Keyword": "k", "Name.Builtin": "k", "Comment": "c", "Literal.String": "s", "Literal.Number": "m",
    "Name.Function": "f", "Name.Decorator": "f", "Operator.Word": "k",
}  # fmt: skip


def frame(
    scorer: Scorer, history: History, attempts: Sequence[Attempt], ranking: Ranking, spending: Spending
) -> dict[str, Any]:
    """The part of a page that needs no result."""
    kernel, gpu, about = scorer.kernel, scorer.gpu, history.about
    results, fault = measured_in(history.folder)
    return {
        "about": about,
        "settings": _settings(about),
        "state": history.state,
        "kernel": kernel,
        "sizes": ", ".join(f"{name} = {value}" for name, value in kernel.problem.items()),
        "grid": str(kernel.grid),
        "occupancy": scorer.occupancy,
        "gpu": gpu,
        "uncoalesced": [str(one) for one in uncoalesced(scorer.trace)],
        "counts": counts(attempts),
        "listed": listed(attempts, ranking),
        "spending": spending,
        "ranked": ranking.sentence(),
        "measured": results,
        "measured_fault": fault,
        "times": times_note(gpu.name, scorer.replay, scorer.work_class),
        "times_rank": times_rank(gpu.name, scorer.replay, scorer.work_class),
        "advice": None,
        "result": None,
    }


def result(
    scorer: Scorer,
    folder: Path,
    attempts: Sequence[Attempt],
    ranking: Ranking,
    replayed: tuple[Replayed, Replayed],
    drawn: Mapping[str, Drawing],
    scores: tuple[Score, Score],
    sources: Mapping[str, str],
) -> dict[str, Any]:
    """The rest of a page that has a best swizzle; replays and scores are of the launch order and of the best."""
    best, (before, after) = ranking.order(attempts)[0], replayed
    return {
        "result": {
            "baseline": scores[0],
            "score": scores[1],
            "rows": best_rows(attempts, scores[0], ranking),
            "stability": stored_lines(folder),
            "has_energy": any(one.name == "energy" for one in ranking.objectives),
            "best": best,
            "price": scores[1].price,
            "verdict": verdict_lines(best.verdict, scorer.gpu.xcds),
            "sources": sources,
            "code": rewritten(scorer.kernel, best.source, scorer.gpu, folder),
        },
        "reproduced": all(one.traffic.l2_hit_rate == s.l2_hit_rate for one, s in zip(replayed, scores, strict=True)),
        "drawn": drawn,
        "is_partitioned": scorer.gpu.l2_partitions is not None,
        "time_bars": time_bars(before.time, after.time),
        "heat_most": f"{most_misses(replayed):,.0f}",
        "misses": [_misses(name, one, scorer.gpu) for name, one in zip(NAMES, replayed, strict=True)],
        "slider": slider_data(scorer.kernel.grid, (before.schedule, after.schedule)),
    }


def _settings(about: Mapping[str, Any]) -> str:
    """Options of the models' requests; those that were not given are left out."""
    given = {key: value for key, value in sorted(about.get("settings", {}).items()) if value not in (None, False, 0)}
    words = {key: ", ".join(map(str, value)) if isinstance(value, list) else value for key, value in given.items()}
    return "; ".join(f"{key} = {value}" for key, value in words.items())


def _misses(name: str, one: Replayed, gpu: Gpu) -> dict[str, str]:
    """L2 misses in whole lines, estimated and counted: an L2 may fetch halves of them."""
    counted = one.traffic.l2_misses * gpu.l2.fetch_bytes // gpu.l2.line_bytes
    return {"name": name, "estimated": f"{one.misses.sum():,.0f}", "counted": f"{counted:,}"}


def render(page: Mapping[str, Any]) -> str:
    """HTML of a page; every value is escaped and its hidden characters spelled out, as nobody who wrote one is trusted.

    Style and script are the package's own; the policy in the head names them by hash, so nothing else is obeyed.
    """
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    def shown(value: Any) -> Any:
        return value if isinstance(value, Markup) else visible(value)

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, finalize=shown, trim_blocks=True, lstrip_blocks=True
    )
    for name in VALUES:
        said = getattr(written, name)
        environment.filters[name] = lambda value, said=said: "–" if value is None else said(value)
    # "visible" for what becomes markup in the template itself
    environment.filters |= {"visible": visible, "cut": written.cut, "coloured": coloured}
    environment.filters |= {"figure": _figure, "verdict": verdict_of, "outcome": outcome}
    style, script = _own("page.css"), _own("page.js")
    given = {
        "style": Markup(style),
        "script": Markup(script),
        "style_hash": _digest(style),
        "script_hash": _digest(script),
        "slider_json": Markup(json.dumps(page.get("slider"))),
    }
    return environment.from_string(_own("page.html")).render({**page, **given})


def _figure(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int | float) else str(value)


def _own(name: str) -> str:
    return resources.files("swizzle_sim.report").joinpath(name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    """Source expression of a Content-Security-Policy for an inline text."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")


def coloured(text: str, language: str) -> Markup:
    """Markup of a text of code; nothing of the text becomes an element."""
    from markupsafe import Markup, escape
    from pygments.lexers import get_lexer_by_name  # noqa: PLC0415  (slow to import, and only a report needs it)

    text = visible(text)
    if len(text) > LONGEST_COLOURED:
        return escape(text)
    parts: list[Markup] = []
    for _, kind, piece in get_lexer_by_name(language).get_tokens_unprocessed(text):
        name = str(kind).removeprefix("Token.")
        style = next((style for token, style in CLASSES.items() if name.startswith(token)), "")
        shown = escape(piece)
        parts.append(Markup('<span class="{}">{}</span>').format(style, shown) if style and piece.strip() else shown)
    return Markup("").join(parts)


PAGE = "report.html"
BIN_FS = 1_000_000  # the replay doubles it until a kernel has 2048 to 4096 bins, which the chart puts together


def write_report(history: History, scorer: Scorer | None = None, *, refresh_s: int = 0) -> Path:
    """Write ``report.html``, the pictures and the best swizzle into the folder of a run.

    A browser loads the page of a run that is not over anew every ``refresh_s``, of 0 never.
    """
    about, attempts, folder = history.about, list(history), history.folder
    scorer = scorer or recorded_scorer(about)
    scorer.bin_fs = BIN_FS
    ranking, spending = ranking_of(about, folder), spending_of(folder)
    files: dict[str, bytes] = {}
    page = frame(scorer, history, attempts, ranking, spending)
    if ordered := ranking.order(attempts):
        best = ordered[0]
        baseline = attempts[0].score if attempts[0].number == 0 else None  # lost, it is computed anew
        scores, sources = (baseline or scorer.baseline, _score_of(best)), best_sources(best, about)
        replayed = pictures.replay_pair(scorer, scorer.permutation(best.swizzle))
        drawn = pictures.drawings(scorer, attempts, ranking, replayed, scores)
        files = pictures.files(drawn, f"simulated, {scorer.replay} replay")
        files |= {name: text.encode() for name, text in sources.items()}
        page |= result(scorer, folder, attempts, ranking, replayed, drawn, scores, sources)
        # by its name alone: the page is the same wherever the folder lies, and however it was typed
        page["advice"] = advice = advise_run(scorer, ranking, attempts, folder.resolve().name)
        page["why_better"] = why_better(scorer, attempts, advice.order) if advice.verdict != "leave" else ()
    written = time.strftime("%H:%M:%S UTC", time.gmtime()) if refresh_s else ""  # a page that stays has the same bytes
    files[PAGE] = render({**page, "refresh_s": refresh_s, "written": written}).encode("utf-8", "replace")
    for name, data in files.items():  # the page last: where it is new, all is
        write_whole(folder / name, data)
    return folder / PAGE


def write_best(history: History) -> None:
    """Write the best swizzle alone into the folder of a run as text, Triton and HIP; nothing where none was scored."""
    for best in ranking_of(history.about, history.folder).order(list(history))[:1]:
        for name, text in best_sources(best, history.about).items():
            write_whole(history.folder / name, text.encode())


def best_sources(best: Attempt, about: Mapping[str, Any]) -> dict[str, str]:
    """Return the best swizzle as files: its own text, Triton and HIP."""
    swizzle = best.swizzle
    # No name in the note: a proposer chooses it, and a line break in it would end the comment.
    rate = percent(_score_of(best).l2_hit_rate)
    note = (
        f"attempt {best.number} on kernel {about['kernel']}, {about['gpu']}; L2 hit rate {rate}, simulated, "
        f"{about['replay']} replay, swizzle-sim {about['version']}"
    )
    return {
        "best.txt": best.source,
        "best_triton.py": f"# {note}\n{emit_triton(swizzle.form)}",
        "best.hip": f"// {note}\n{emit_hip(swizzle.form, cluster=about.get('cluster', 1))}",
    }


def _score_of(attempt: Attempt) -> Score:
    if attempt.score is None:  # `rank` gives none of these
        raise RunError(f"attempt {attempt.number} has no score, so it is no best")
    return attempt.score
