"""Printing of all commands: one JSON document, or tables and lines for people, with the same words everywhere."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from swizzle_sim.base.text import visible

if TYPE_CHECKING:
    from swizzle_sim.language import Grid, Swizzle, Verdict
    from swizzle_sim.pricing.replaying import WorkPerWorkgroup
    from swizzle_sim.pricing.scores import Balance, Score
    from swizzle_sim.pricing.scoring import Scorer
    from swizzle_sim.search.advice import Advice
    from swizzle_sim.workload.kernels import Kernel
    from swizzle_sim.workload.price import RemapPrice
    from xcd_model import Gpu

SCHEMA = 1  # of the documents of --json: raised when a key goes or changes its meaning, not when one comes
PROSE = 24  # columns that a column of prose keeps
FOLDED = 160  # columns at which prose folds where there is no terminal
LEAST = (  # columns that a narrow terminal goes without, the first first
    *("bound [pt]", "Cache hit rate [%]", "Cache [MiB]", "L2 misses", "HBM write [MB]", "L1 reads", "L1 hit [%]"),
    *("ideal", "a line", "a byte", "attempts", "state", "date", "proposer", "replay", "HBM [GB]", "HBM [GiB]", "arch"),
    *("grid", "HBM read [MB]", "what", "orders", "speedup", "time [µs]"),
)
SIMULATED = {
    "lockstep": "simulated, lockstep replay; time is a roofline by windows: not measured, no bound, ranks no orders",
    "timed": "simulated, timed replay, arithmetic at the sustained clock or what power allows; not a measurement",
}
BELIEVE = "Which replay, and which number to believe: docs/believe.md"
COUNTED = {replay: f"simulated, {replay} replay; not a measurement" for replay in SIMULATED}  # of tables without a time


def print_json(document: Mapping[str, Any]) -> None:
    """Print one document on stdout, with the version of its keys; NaN never appears."""
    print(json.dumps({"schema_version": SCHEMA, **document}, indent=2, allow_nan=False, default=_plain))


def _plain(value: Any) -> dict[str, Any]:
    """What a document says of a result: its own words, or its fields."""
    return value.as_dict() if hasattr(value, "as_dict") else asdict(value)


class _Clean(Console):
    """Console that spells out what a terminal would obey: texts and file names are anybody's.

    On a terminal a sentence folds at its words. Indented lines and texts of several lines stay whole: commands, code.
    """

    def print(self, *objects: Any, **options: Any) -> None:
        shown = [visible(one) if isinstance(one, str) else one for one in objects]
        text = shown[0] if self.is_terminal and len(shown) == 1 else None
        if isinstance(text, str) and not text.startswith(" ") and "\n" not in text.rstrip("\n"):
            options.setdefault("soft_wrap", False)
        super().print(*shown, **options)


def console(*, wide: bool = False) -> Console:
    """Console on stdout; plain into a pipe, no colour with NO_COLOR. ``wide`` leaves long lines to the terminal."""
    return _Clean(highlight=False, soft_wrap=wide)


def line(text: str, *, style: str | None = None) -> None:
    """Print a sentence on stdout, as long as it is; a terminal folds it at its words."""
    console(wide=True).print(text, style=style, markup=False)


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 1, note: str = "") -> None:
    """Print a table; the first ``left`` columns are text, the others figures.

    Only the last of several text columns may fold. On a terminal where the rest does not fit, columns of `LEAST` are
    left out, and said to be; where that is not enough, each row becomes a list of names and values.
    """
    out = console()
    cells = [[visible(cell) for cell in row] for row in rows]
    heads = [visible(column) for column in columns]
    if not out.is_terminal:  # a log or a pipe has no width: never cut a figure
        out.width = 100_000
    kept = list(range(len(heads)))
    shown, needs = _drawn(out, heads, cells, kept, left)
    for least in LEAST:
        if needs > out.width and (gone := [i for i in kept if heads[i].replace("\n", " ").endswith(least) and i > 0]):
            kept = [i for i in kept if i not in gone]
            shown, needs = _drawn(out, heads, cells, kept, left)
    if needs > out.width:
        _lists(title, heads, cells, note)
        return
    out.width = min(out.width, max(needs, FOLDED))
    line(title, style="bold")  # not the table's own title, which it would fold
    out.print(shown)
    if note:
        out.print(note, markup=False) if out.is_terminal else line(note)
    if len(kept) < len(heads):
        away = ", ".join(heads[i].replace("\n", " ") for i in range(len(heads)) if i not in kept)
        line(f"left out at {console().width} columns: {away} (wider, or --json)")


def table_of(
    title: str,
    what: str,
    columns: Mapping[str, Callable[[Any], str]],
    things: Iterable[tuple[str, Any]],
    *,
    left: int = 1,
    note: str = "",
) -> None:
    """Print a table of named things: their names below ``what``, and what each column says of them."""
    rows = [[name, *(said(one) for said in columns.values())] for name, one in things]
    table(title, [what, *columns], rows, left=left, note=note)


def _drawn(
    out: Console, heads: Sequence[str], cells: Sequence[Sequence[str]], kept: Sequence[int], left: int
) -> tuple[Table, int]:
    """Table of the columns kept, and the columns of a terminal that it needs."""
    shown = Table(box=SIMPLE_HEAD, show_edge=False, show_header=any(heads))
    for i in kept:
        prose = 0 < i == left - 1
        longest = max(cell_len(line) for text in (heads[i], *(row[i] for row in cells)) for line in text.split("\n"))
        shown.add_column(
            Text(heads[i]),
            justify="left" if i < left else "right",
            no_wrap=not prose,
            overflow="fold",
            min_width=min(longest, PROSE) if prose else longest,
        )
    for row in cells:
        shown.add_row(*(Text(row[i]) for i in kept))
    return shown, Measurement.get(out, out.options.update(max_width=100_000), shown).minimum


def _lists(title: str, columns: Sequence[str], cells: Sequence[Sequence[str]], note: str) -> None:
    for said in (title, *([f"({note})"] if note else [])):
        line(said)
    for row in cells:
        line("")
        for column, cell in zip(columns, row, strict=True):
            if cell:
                line(f"{column.replace(chr(10), ' ') or '-'}: {cell}")


def pct(rate: float | None) -> str:
    """Rate in percent; a dash where there is none."""
    return "-" if rate is None or math.isnan(rate) else f"{100 * rate:.2f}"


def fixed(value: float | None, scale: float = 1.0, digits: int = 1) -> str:
    """Figure with so many digits after the point; a dash where there is none."""
    return "-" if value is None else f"{scale * value:.{digits}f}"


SCORE: Mapping[str, Callable[[Score], str]] = {
    "L2 hit\nrate [%]": lambda score: pct(score.l2_hit_rate),
    "without\ncode [%]": lambda score: pct(score.data_l2_hit_rate),
    "Infinity\nCache hit\nrate [%]": lambda score: pct(score.mall_hit_rate),
    "HBM\n[GB]": lambda score: f"{score.hbm_bytes / 1e9:.3f}",
    "time\n[µs]": lambda score: f"{score.time_us:.1f}",
    "speedup": lambda score: f"{score.speedup:.3f}",
    "below\nbound [pt]": lambda score: f"{100 * score.distance_to_bound:.2f}",
}
SCORE_COLUMNS = tuple(SCORE)
IN_BRIEF = ("L2 hit\nrate [%]", "HBM\n[GB]", "time\n[µs]", "speedup")  # columns of one screen


def simulated(gpu: str, replay: str, work_class: str = "") -> str:
    """Note under a table of scores: what kind of numbers these are, and which figure decides between orders."""
    from swizzle_sim.search.ranking import times_note

    note = [times_note(gpu, replay, work_class)] if replay == "timed" else []
    return "\n".join([SIMULATED[replay], *note, BELIEVE])


def print_advice(advice: Advice, whys: Sequence[str] = ()) -> None:
    """Print the answer on the first line, its figures, what limits the time, and why an order is better that gains."""
    line(visible(advice.what), style="bold")
    if said := "; ".join(filter(None, [advice.why, advice.limit])):
        line(visible(said))
    for why in whys if advice.verdict != "leave" else ():
        line(visible(why))


def print_last(advice: Advice) -> None:
    """Print the commands that go on; on a terminal the answer again, as the last line."""
    for command in advice.next:
        line(f"  {visible(command)}")
    if console().is_terminal:
        line(visible(advice.what), style="bold")


def score_cells(score: Score | None, columns: Sequence[str] = SCORE_COLUMNS) -> list[str]:
    """Cells of one score below some of `SCORE_COLUMNS`; dashes where there is none."""
    return [SCORE[column](score) if score else "-" for column in columns]


def score_table(
    title: str,
    heads: Sequence[str],
    rows: Iterable[tuple[Any, ...]],
    note: str,
    *,
    left: int | None = None,
    columns: Sequence[str] = SCORE_COLUMNS,
) -> None:
    """Print scores: each row has cells below ``heads``, all of them text if not ``left`` are, and a score or None."""
    cells = [[*row[:-1], *score_cells(row[-1], columns)] for row in rows]
    table(title, [*heads, *columns], cells, left=len(heads) if left is None else left, note=note)


def title_of(kernel: Kernel, *gpus: Gpu) -> str:
    """Kernel, sizes and GPUs above a table."""
    return f"{kernel.name} {sizes_text(kernel.problem)}{_priced(kernel)} on {', '.join(one.title for one in gpus)}"


def _priced(kernel: Kernel) -> str:
    """Block sizes and configuration of the autotuner that a user's kernel is captured with."""
    if kernel.launch is None or not kernel.file:
        return ""
    blocks = {n: v for n, v in kernel.launch.constexprs.items() if type(v) is int and n not in kernel.problem}
    chosen = f", configuration {kernel.launch.config} of its autotuner" if kernel.launch.config else ""
    return f", {sizes_text(blocks)}{chosen}," if blocks or chosen else ""


def sizes_text(problem: Mapping[str, int]) -> str:
    """Problem sizes as they are typed."""
    return " ".join(f"{name}={value}" for name, value in problem.items())


def say(line: str) -> None:
    """Print a remark on stderr, in one piece though threads print too."""
    print(visible(line), file=sys.stderr, flush=True)


def print_verdict(candidate: Swizzle, grid: Grid, num_xcds: int, verdict: Verdict, on: str = "") -> None:
    """Say whether a candidate is a bijection here, and where else."""
    from swizzle_sim.language.lattice import claim_of

    answer = "a bijection" if verdict.bijective else "NOT a bijection"
    if verdict.bijective and verdict.sampled:
        answer = "no counter-example in a sample of the workgroups"
    if verdict.counterexample and verdict.counterexample.code == "deadlock":
        answer = "a bijection that may WAIT FOR EVER"
    line(f"{candidate.name}: {answer} at grid {grid}{on}, {num_xcds} XCDs")
    if verdict.counterexample:
        line(f"  {verdict.counterexample.message}")
    line(f"  {claim_of(verdict, grid)}; {verdict.passed} of {verdict.tested} grids and XCD counts pass")
    if not verdict.complete:
        line("  other grids took too long: untested")
    if verdict.bijective and verdict.lattice_counterexample:
        line(f"  elsewhere: {verdict.lattice_counterexample.message}")


def scored_on(scorer: Scorer) -> dict[str, Any]:
    """What every JSON document of scores begins with: the kernel, its class, the GPU and the replay."""
    from swizzle_sim.pricing.access_patterns import emulated
    from swizzle_sim.search.ranking import default_objectives

    formats = emulated(scorer.kernel, scorer.gpu)
    return {
        "kernel": scorer.kernel.name,
        "gpu": scorer.gpu.name,
        "problem": dict(scorer.kernel.problem),
        "replay": scorer.replay,
        "kind": "simulated",
        "work_class": scorer.work_class,
        "decides": default_objectives(scorer.gpu.name, scorer.replay, scorer.work_class)[0].name,
        "seed": scorer.seed,
        "jitter_ns": scorer.jitter_ns,
        **({"emulated": formats} if formats else {}),
    }


Level = Mapping[str, Mapping[str, int]]
LEVELS: Mapping[str, Callable[[Level], str]] = {
    "L1\nreads": lambda at: str(at["l1"]["requests"]),
    "L1 hit\n[%]": lambda at: _share(at["l1"]["hits"], at["l1"]["requests"]),
    "L2\nrequests": lambda at: str(at["l2"]["requests"]),
    "L2 hit\n[%]": lambda at: _share(at["l2"]["hits"], at["l2"]["requests"]),
    "L2\nmisses": lambda at: str(at["l2"]["misses"]),
    "HBM read\n[MB]": lambda at: f"{at['hbm']['read_bytes'] / 1e6:.1f}",
    "HBM write\n[MB]": lambda at: f"{at['hbm']['write_bytes'] / 1e6:.1f}",
}


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.2f}" if whole else "-"


BALANCE: Mapping[str, Callable[[Balance], str]] = {
    "work of the\nfullest XCD\n/ mean": lambda found: f"{found.heaviest_over_mean:.2f}",
    "last XCD\nends\n/ first": lambda found: f"{found.last_over_first:.2f}",
    "makespan\n/ ideal": lambda found: f"{found.over_ideal:.2f}",
    "tail\n[%]": lambda found: f"{100 * found.tail / found.makespan:.1f}",
}


def print_balance(work: WorkPerWorkgroup, scores: Mapping[str, Score]) -> None:
    """Print how much work the workgroups have, and how evenly each order spreads it."""
    found = [(name, score.balance) for name, score in scores.items() if score.balance]
    note = "ideal: all CUs end at once, with the same CU time; tail: the part of the time in which some CU has no work"
    table_of(f"Balance: {work}", "swizzle", BALANCE, found, note=note)


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def print_price(scorer: Scorer, price: RemapPrice | None, not_priced: str) -> None:
    """Print what the remapping costs, or by which resources it was scored instead."""
    if price is None:
        own = scorer.kernel.resources
        line(f"price of the remap: not compiled ({not_priced}); resources: {own.source}")
        return
    lost = " (costly)" if price.is_costly else ""
    compiled = f"{price.after.arch}, Triton {price.after.triton}"
    line(f"price of the remap: {price}{lost}, written as: {price.emission} ({compiled})")
    if price.advice:
        line(price.advice)
