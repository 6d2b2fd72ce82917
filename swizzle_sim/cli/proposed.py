"""Options of the proposers that are not the families, and the table of what one came to."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from swizzle_sim.proposers import Proposed

Proposer = Annotated[
    str, typer.Option("--proposer", help="Who proposes candidates: families, search, llm or two-stage.")
]
Model = Annotated[
    list[str] | None,
    typer.Option("--model", help="llm: DSPy model string, such as openai/gpt-4o; give it again for several."),
]
ApiBase = Annotated[str | None, typer.Option("--api-base", help="llm: base URL of an OpenAI-compatible server.")]
Context = Annotated[
    str | None, typer.Option("--context", help="llm: what is told of the hardware: aware, unaware or overload.")
]
Docs = Annotated[Path | None, typer.Option("--docs", help="llm: document for --context overload.")]
Iterations = Annotated[int | None, typer.Option("--iterations", min=1, max=10_000, help="llm: by default 5.")]
Candidates = Annotated[
    int | None, typer.Option("--candidates", min=1, max=100, help="llm: candidates an iteration, by default 1.")
]
MaxTokens = Annotated[int | None, typer.Option("--max-tokens", min=1, help="llm: stop when that many are spent.")]
MaxDollars = Annotated[float | None, typer.Option("--max-dollars", min=0, help="llm: stop when that many are spent.")]
MaxMinutes = Annotated[float | None, typer.Option("--max-minutes", min=0, help="llm: stop after that time.")]
Temperature = Annotated[float | None, typer.Option("--temperature", min=0, max=2, help="llm: of the sampling.")]
ReplyTokens = Annotated[int | None, typer.Option("--reply-tokens", min=1, help="llm: most tokens of one reply.")]
Timeout = Annotated[float | None, typer.Option("--timeout", min=0.1, help="llm: for one answer [s], by default 300.")]
Tries = Annotated[int | None, typer.Option("--tries", min=1, max=20, help="llm: times to ask one question, 4.")]
Stream = Annotated[bool, typer.Option("--stream", help="llm: read answers as they are written.")]
Structured = Annotated[bool, typer.Option("--structured", help="llm: constrain answers by a JSON schema.")]
Image = Annotated[bool, typer.Option("--image", help="llm: show the model a picture of the best order.")]
Program = Annotated[Path | None, typer.Option("--program", help="llm: program that tune-prompt saved.")]
Prices = Annotated[Path | None, typer.Option("--prices", help="llm: price table to use in place of the shipped one.")]


RANKED_BY = "l2_hit_rate"  # what finalists are told apart by


def run_of(replay: str | None) -> Path | None:
    """Folder of a recorded run, where ``--replay`` names one rather than a replay.

    Raises
    ------
    RunError
        If it names neither.
    """
    from swizzle_sim.history import FILE
    from swizzle_sim.replaying import REPLAYS
    from xcd_model.errors import RunError

    if replay is None or replay in REPLAYS:
        return None
    if not os.path.isfile(os.path.join(replay, FILE)):
        raise RunError(f"{replay}: neither lockstep nor timed, nor a folder with a run; `swizzle-sim runs` lists runs")
    return Path(replay)


def say(line: str) -> None:
    """Progress, on stderr."""
    print(line, file=sys.stderr, flush=True)


def print_proposed(found: Proposed, json: bool, uncertainty: bool = False) -> None:
    """Print what a proposer came to; with ``uncertainty`` which of its best cannot be told apart."""
    from swizzle_sim.cli import apart
    from swizzle_sim.cli.output import SCORE_COLUMNS, SIMULATED, console, print_json, score_cells, sizes_text, table
    from swizzle_sim.cli.rewritten import rewrite_best
    from swizzle_sim.history import History
    from swizzle_sim.recorded import recorded_kernel, recorded_scorer
    from swizzle_sim.report import write_report
    from xcd_model import Gpu

    run = found.run
    with History(run.folder) as history:
        about = history.about
        workload, written, told = recorded_kernel(about), None, None
        if about["kernel_file"]:
            written = rewrite_best(run, workload, Gpu.from_dict(about["gpu_description"]))
        if uncertainty and found.document.get("objectives", [RANKED_BY]) == [RANKED_BY]:
            told = apart.told_apart(run, recorded_scorer(about, workload))
        write_report(history, workload)  # last: it says whether the rewriting was checked, and what is told apart
    if json:
        document: dict[str, Any] = {key: about[key] for key in ("kernel", "gpu", "problem", "replay", "seed")}
        more = written.as_dict() if written else {}
        document |= {"kind": "simulated", "run": str(run.folder), "uncertainty": told and told.as_dict()}
        print_json({**document, **found.document, **more})
        return
    rows = [
        [label, attempt.name, *score_cells(attempt.score)] if attempt and attempt.score else [label, "-", *"------"]
        for label, attempt in found.beside
    ]
    title = f"{about['kernel']} {sizes_text(about['problem'])} on {about['gpu']}"
    table(title, ["", "swizzle", *SCORE_COLUMNS], rows, left=2, note=SIMULATED[about["replay"]])
    out = console(wide=True)
    for line in (*found.lines, *(apart.lines_of(told) if told else ())):
        out.print(line, markup=False)
    asked = (run.folder / "transcript.sqlite").exists()
    more_files = "transcript" if asked else "history"
    out.print(f"written: {run.folder}/ (report.html, best.txt, best_triton.py, best.hip, {more_files})", markup=False)
    for line in written.lines if written else ():
        out.print(line, markup=False)
    folder = shlex.quote(str(run.folder))
    if asked:
        print(f"repeat it with no model: swizzle-sim optimize --replay {folder}")
    else:
        print(f"next: swizzle-sim report {folder} --open")
