"""``suite``: every kernel's baseline, best family and bound in one table."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from swizzle_sim.cli.arguments import GpuName, Json, Replay

if TYPE_CHECKING:
    from swizzle_sim.suite.result import Suite

RUNS = "runs"


def suite(
    kernels: Annotated[
        list[str] | None, typer.Argument(metavar="[KERNEL]...", help="Kernels to score; by default all.")
    ] = None,
    paper: Annotated[bool, typer.Option("--paper", help="The ten of SwizzlePerf, at the sizes measured.")] = False,
    gpu: GpuName = "mi300x",
    replay: Replay = "lockstep",
    effort: Annotated[
        float, typer.Option("--effort", min=0.0, max=1e6, help="How much to try: 1 is minutes for the paper's ten.")
    ] = 1.0,
    threads: Annotated[
        int | None, typer.Option("--threads", min=1, max=1024, help="Replays at once; by default one a core.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Run folder to make; by default the next in runs/.")
    ] = None,
    resume: Annotated[Path | None, typer.Option("--resume", help="Run folder to go on with.")] = None,
    csv: Annotated[Path | None, typer.Option("--csv", metavar="FILE", help="Write the table as CSV too.")] = None,
    markdown: Annotated[Path | None, typer.Option("--markdown", metavar="FILE", help="And as Markdown.")] = None,
    json: Json = False,
) -> None:
    """Score kernels of the suite at their default sizes: as launched, with the best family, and the bound."""
    from swizzle_sim.cli.optimize import next_folder
    from swizzle_sim.cli.output import print_json
    from swizzle_sim.kernels import kernel, kernel_names
    from swizzle_sim.suite import PAPER, score_suite
    from xcd_model import gpu as load_gpu
    from xcd_model.errors import RunError

    if out and resume:
        raise RunError("--out makes a new run and --resume goes on with one: give one of them")
    if paper and kernels:
        raise RunError("--paper names its kernels itself: leave the others out")
    for path in (csv, markdown):
        if path is not None and not path.absolute().parent.is_dir():
            raise RunError(f"{path}: there is no folder {path.parent}")
    names = list(PAPER) if paper else list(dict.fromkeys(kernels or kernel_names()))
    chosen, device = [kernel(name) for name in names], load_gpu(gpu)
    folder = resume or out or next_folder(Path(RUNS), f"suite-{'paper-' if paper else ''}{device.name}")
    try:
        with _Progress(len(chosen)) as progress:
            found = score_suite(
                chosen,
                device,
                folder,
                replay=replay,
                effort=effort,
                threads=threads,
                resume=resume is not None,
                on_kernel=progress.advance,
            )
    except KeyboardInterrupt:
        words = [word for word in sys.argv[1:] if word != "--json"]
        go_on = words if resume else [*_without_out(words), "--resume", str(folder)]
        print(f"\ninterrupted; go on with: swizzle-sim {shlex.join(go_on)}", file=sys.stderr)
        raise typer.Exit(130) from None
    _write(found, csv, markdown)
    if json:
        print_json(
            {
                "gpu": found.gpu,
                "replay": found.replay,
                "kind": "simulated",
                "run": str(found.folder),
                "effort": effort,
                "kernels": [result.as_dict() for result in found.results],
            }
        )
        return
    _print(found, [path for path in (csv, markdown) if path])


def _without_out(words: list[str]) -> list[str]:
    """Words without ``--out`` or ``-o`` and its value."""
    kept, skip = [], False
    for word in words:
        taken = word in ("--out", "-o")
        if not skip and not taken and not word.startswith("--out="):
            kept.append(word)
        skip = taken
    return kept


def _write(found: Suite, csv: Path | None, markdown: Path | None) -> None:
    from swizzle_sim.suite import suite_csv, suite_markdown
    from xcd_model.errors import RunError

    for path, make in ((csv, suite_csv), (markdown, suite_markdown)):
        if path is None:
            continue
        try:
            path.write_text(make(found), encoding="utf-8")
        except OSError as error:
            raise RunError(f"{path}: cannot be written ({error.strerror})") from None


def _print(found: Suite, written: list[Path]) -> None:
    from swizzle_sim.cli.output import console, table
    from swizzle_sim.suite.table import COLUMNS, cells, notes

    order = (0, 1, 7, 8, 9, 2, 3, 4, 5, 6)  # words first: a table's text columns stand on the left
    heads = [COLUMNS[i].replace(" [", "\n[") for i in order]
    rows = [[cells(result)[i] for i in order] for result in found.results]
    if all(result.best_domain == "everywhere" for result in found.results):
        heads, rows = [*heads[:2], *heads[3:]], [[*row[:2], *row[3:]] for row in rows]
    table(f"Suite on {found.gpu}", heads, rows, left=len(heads) - 5)
    out = console(wide=True)
    for note in notes(found):
        out.print(note, markup=False)
    for path in written:
        out.print(f"written: {path}", markup=False)
    out.print(f"kept: {found.folder}/ (one file a kernel, with the text of its best family)", markup=False)


class _Progress:
    """Which kernel is at work: a bar on a terminal, a line a kernel in a log."""

    def __init__(self, total: int):
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        self.console = Console(stderr=True, highlight=False)
        self.bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[best]}", markup=False),
            console=self.console,
            disable=not self.console.is_terminal,
            transient=True,
        )
        self.total, self.name, self.begun = total, "", 0
        self.task = self.bar.add_task("", total=None, best="")

    def __enter__(self) -> _Progress:
        self.bar.start()
        return self

    def __exit__(self, *exc_info) -> None:
        self.bar.stop()

    def advance(self, name: str, done: int, total: int, best: float) -> None:
        """Take note of one candidate."""
        if name != self.name:
            self.name, self.begun = name, self.begun + 1
            if not self.console.is_terminal:
                self.console.print(f"{name} ...", markup=False)
        text = f"best L2 hit rate {100 * best:.2f} %" if total else "tracing, bound, order as launched"
        self.bar.update(
            self.task,
            description=f"{name} ({self.begun} of {self.total})",
            completed=done,
            total=total or None,
            best=text,
        )
