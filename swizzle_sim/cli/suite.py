"""``kernels --scored``: launch order, best family and bound of kernels at their default sizes, in one table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from swizzle_sim.base.interruption import go_on_with
from swizzle_sim.base.progress import Progress
from swizzle_sim.cli.arguments import REPLAY_WORDS, one_folder, option, run_folders
from swizzle_sim.cli.output import line, print_json, table
from swizzle_sim.search.jobs import FILE

if TYPE_CHECKING:
    from swizzle_sim.workload.kernels import Kernel
    from xcd_model import Gpu

RUNS, SCORED = "runs", "With --scored"
_EFFORT = "Multiple of the default number of candidates."


@dataclass(frozen=True)
class Scoring:
    """How kernels are scored, and where the results are stored."""

    scored: Annotated[bool, option("--scored", help="Score them too: launch order, best family, bound.")] = False
    replay: Annotated[
        str, option("--replay", metavar="REPLAY", help="timed or lockstep.", panel=SCORED, offers=REPLAY_WORDS)
    ] = "timed"
    effort: Annotated[float, option("--effort", min=0.0, max=1e6, help=_EFFORT, panel=SCORED)] = 1.0
    out: Annotated[Path | None, option("--out", "-o", metavar="RUN", help="Run folder to make.", panel=SCORED)] = None
    resume: Annotated[
        Path | None,
        option("--resume", metavar="RUN", help="Run folder to go on with.", panel=SCORED, offers=run_folders),
    ] = None

    @property
    def needless(self) -> list[str]:
        """Options typed that only ``--scored`` reads."""
        values = {"--effort": self.effort != 1.0, "--out": self.out is not None, "--resume": self.resume is not None}
        return [] if self.scored else [name for name, typed in values.items() if typed]


def score_kernels(names: Sequence[str], device: Gpu, how: Scoring, json: bool) -> None:
    """Score kernels and print the table."""
    from swizzle_sim.cli.optimize import next_folder
    from swizzle_sim.search.suite.run import score_suite
    from swizzle_sim.workload.kernels import kernel

    given = one_folder(how.out, how.resume)
    chosen = _compiled([name for name in names if len(names) == 1 or kernel(name).runs_on(device)], device)
    folder = given or next_folder(Path(RUNS), f"kernels-{device.name}")
    go_on_with(folder, FILE)
    with Progress("kernels", "candidates") as progress:
        options: dict[str, Any] = {"replay": how.replay, "effort": how.effort, "resume": how.resume is not None}
        rows = score_suite(chosen, device, folder, on_kernel=_counted(progress, len(chosen)), **options)
    if json:
        about = {"gpu": device.name, "replay": how.replay, "kind": "simulated", "run": str(folder)}
        print_json({**about, "effort": how.effort, "kernels": rows})
    else:
        _print(rows, device.name, how.replay, folder)


def _compiled(names: Sequence[str], device: Gpu) -> list[Kernel]:
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
    """Callback of the scores: kernel, candidates done, candidates, best L2 hit rate."""
    begun: list[str] = []

    def on_kernel(name: str, done: int, total: int, best: float) -> None:
        if name not in begun:
            begun.append(name)
        note = f"best L2 hit rate {100 * best:.2f} %" if total else "tracing, bound, launch order"
        progress(done, total or None, what=f"{name} ({len(begun)} of {kernels})", note=note)

    return on_kernel


def _print(results: Sequence[dict[str, Any]], gpu: str, replay: str, folder: Path) -> None:
    from swizzle_sim.language.lattice import unconditional
    from swizzle_sim.search.suite.run import COLUMNS, cells, notes

    order = (0, 1, 9, 10, 11, 2, 3, 4, 5, 6, 7, 8)  # words first: a table's text columns stand on the left
    heads = [COLUMNS[i].replace(" [", "\n[") for i in order]
    rows = [[cells(result)[i] for i in order] for result in results]
    if all(unconditional(result["best_domain"]) for result in results):
        heads, rows = [*heads[:2], *heads[3:]], [[*row[:2], *row[3:]] for row in rows]
    table(f"Kernels on {gpu}", heads, rows, left=len(heads) - 7)
    for said in (*notes(results, gpu, replay), f"written: {folder}/ ({FILE}; --resume prints it again)"):
        line(said)
