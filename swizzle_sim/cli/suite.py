"""``suite``: launch order, best family and bound of every kernel in one table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from swizzle_sim.base.interruption import go_on_with
from swizzle_sim.base.progress import Progress
from swizzle_sim.cli.arguments import (
    GpuName,
    Json,
    Replay,
    argument,
    grouped,
    known_kernels,
    one_folder,
    option,
    run_folders,
)
from swizzle_sim.cli.output import line, print_json, table
from swizzle_sim.search.jobs import FILE
from xcd_model.errors import RunError

if TYPE_CHECKING:
    from swizzle_sim.search.suite.run import Suite
    from swizzle_sim.workload.kernels import Kernel
    from xcd_model import Gpu

RUNS = "runs"

Kernels = Annotated[list[str] | None, argument("KERNEL", "Kernels to score; by default all.", known_kernels)]
Paper = Annotated[bool, option("--paper", help="The ten of SwizzlePerf, at the sizes measured.")]
Effort = Annotated[
    float,
    option(
        "--effort",
        min=0.0,
        max=1e6,
        help="Multiple of the default number of candidates; 1 takes minutes for the paper's ten.",
    ),
]


@dataclass(frozen=True)
class SuiteRun:
    """How the suite is run, and where its results are stored."""

    threads: Annotated[
        int | None, option("--threads", min=1, max=1024, help="Replays at once; by default one a core.")
    ] = None
    out: Annotated[Path | None, option("--out", "-o", help="Run folder to make; by default the next in runs/.")] = None
    resume: Annotated[Path | None, option("--resume", help="Run folder to go on with.", offers=run_folders)] = None


@dataclass(frozen=True)
class Tables:
    """Files that the table is written to."""

    csv: Annotated[Path | None, option("--csv", metavar="FILE", help="Write the table as CSV too.")] = None
    markdown: Annotated[Path | None, option("--markdown", metavar="FILE", help="And as Markdown.")] = None

    def paths(self) -> list[Path]:
        """Files named."""
        return [path for path in (self.csv, self.markdown) if path is not None]


@grouped
def suite(
    kernels: Kernels = None,
    paper: Paper = False,
    gpu: GpuName = "mi300x",
    replay: Replay = "timed",
    effort: Effort = 1.0,
    run: SuiteRun = SuiteRun(),
    tables: Tables = Tables(),
    json: Json = False,
) -> None:
    """Score kernels of the suite at their default sizes: launch order, best family, and bound."""
    from swizzle_sim.cli.optimize import next_folder
    from swizzle_sim.search.suite import PAPER, score_suite
    from swizzle_sim.workload.kernels import kernel, kernel_names
    from xcd_model import gpu as load_gpu

    given = one_folder(run.out, run.resume)
    if paper and kernels:
        raise RunError("--paper names its kernels itself: leave the others out")
    for path in tables.paths():
        if not path.absolute().parent.is_dir():
            raise RunError(f"{path}: there is no folder {path.parent}")
    device = load_gpu(gpu)
    every = (name for name in kernel_names() if kernel(name).runs_on(device))
    names = list(PAPER) if paper else list(dict.fromkeys(kernels or every))
    chosen = _compiled(names, device)
    folder = given or next_folder(Path(RUNS), f"suite-{'paper-' if paper else ''}{device.name}")
    go_on_with(folder, FILE)
    with Progress("suite", "candidates") as progress:
        found = score_suite(
            chosen,
            device,
            folder,
            replay=replay,
            effort=effort,
            threads=run.threads,
            resume=run.resume is not None,
            on_kernel=_counted(progress, len(chosen)),
        )
    _write(found, tables)
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
    _print(found, tables.paths())


def _compiled(names: list[str], device: Gpu) -> list[Kernel]:
    """Kernels of the registry with the resources that they take on a GPU."""
    from swizzle_sim.capture.occupancy import compiled_for
    from swizzle_sim.workload.kernels import kernel

    found = []
    with Progress("compiling", "kernels") as progress:
        for done, name in enumerate(names):
            progress(done, len(names), note=name)
            found.append(compiled_for(kernel(name), device))
    return found


def _counted(progress: Progress, kernels: int) -> Callable[[str, int, int, float], None]:
    """Callback of the suite: kernel, candidates done, candidates, best L2 hit rate."""
    begun: list[str] = []

    def on_kernel(name: str, done: int, total: int, best: float) -> None:
        if name not in begun:
            begun.append(name)
        note = f"best L2 hit rate {100 * best:.2f} %" if total else "tracing, bound, launch order"
        progress(done, total or None, what=f"{name} ({len(begun)} of {kernels})", note=note)

    return on_kernel


def _write(found: Suite, tables: Tables) -> None:
    from swizzle_sim.search.suite import suite_csv, suite_markdown

    for path, make in ((tables.csv, suite_csv), (tables.markdown, suite_markdown)):
        if path is None:
            continue
        try:
            path.write_text(make(found), encoding="utf-8")
        except OSError as error:
            raise RunError(f"{path}: cannot be written ({error.strerror})") from None


def _print(found: Suite, written: list[Path]) -> None:
    from swizzle_sim.language.lattice import unconditional
    from swizzle_sim.search.suite.run import COLUMNS, cells, notes

    order = (0, 1, 9, 10, 11, 2, 3, 4, 5, 6, 7, 8)  # words first: a table's text columns stand on the left
    heads = [COLUMNS[i].replace(" [", "\n[") for i in order]
    rows = [[cells(result)[i] for i in order] for result in found.results]
    if all(unconditional(result.best_domain) for result in found.results):
        heads, rows = [*heads[:2], *heads[3:]], [[*row[:2], *row[3:]] for row in rows]
    table(f"Suite on {found.gpu}", heads, rows, left=len(heads) - 7)
    files = [*map(str, written), f"{found.folder}/ ({FILE}; --resume prints it again)"]
    for said in (*notes(found), *(f"written: {file}" for file in files)):
        line(said)
