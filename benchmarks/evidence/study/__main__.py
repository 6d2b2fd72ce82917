"""``python -m swizzle_benchmarks.evidence.study contexts|models|benchmark``: language models compared.

``contexts`` and ``models`` are the runs of the paper's figures, ``benchmark`` is a protocol for one model.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from swizzle_agent.proposer import read_options
from swizzle_agent.settings import Inputs, Settings
from swizzle_sim.cli.app import main
from swizzle_sim.cli.arguments import GpuName, Json, Seed, grouped, load_fitting, load_kernel
from swizzle_sim.cli.output import SIMULATED, console, pct, print_json, say, sizes_text, table
from swizzle_sim.cli.proposer_options import LlmOptions
from swizzle_sim.workload.kernels import Kernel
from xcd_model import gpu as load_gpu

from .protocol import GPUS, INTERVAL, Benchmark, run_benchmark
from .runs import Study, run_study

Kernels = Annotated[list[str], typer.Option("--kernel", help="Kernel and sizes, such as 'gemm M=4096 N=4096'.")]
Which = Annotated[str, typer.Argument(metavar="contexts|models|benchmark")]
Folder = Annotated[Path, typer.Option("--out", "-o", help="Folder of the study.")]
Replay = Annotated[str, typer.Option("--replay", help="Replay that the counts come from: lockstep or timed.")]


@dataclass(frozen=True)
class StudyRuns:
    """Options of the runs of a study."""

    gpu: GpuName = "mi300x"
    replay: Replay = "timed"
    seed: Seed = 0
    out: Folder = Path("studies")


@grouped
def study(which: Which, kernels: Kernels, models: LlmOptions, runs: StudyRuns, json: Json = False) -> None:
    """Compare contexts or models over runs of one order an answer, or score a model by a protocol."""
    settings, inputs = read_options(models.given(), runs.seed)
    if which == "benchmark":
        _benchmark(kernels, settings, inputs, runs, json)
        return
    device = load_gpu(runs.gpu)
    task = Study(
        which=which,
        kernels=tuple(load_kernel(*_named(text), device.arch) for text in kernels),
        gpu=device,
        folder=runs.out,
        settings=settings,
        inputs=inputs,
        replay=runs.replay,
    )
    found = run_study(task, say)
    if json:
        print_json(found)
    else:
        _print_study(found, runs.out / f"study-{which}.json")


def _benchmark(kernels: list[str], settings: Settings, inputs: Inputs, runs: StudyRuns, json: bool) -> None:
    """Score a model by the protocol, on its GPUs; ``--seed`` draws the sizes."""

    def load(text: str, sizes: Any, gpu: Any) -> Kernel:
        name, typed = _named(text)
        return load_fitting(name, [*typed, *(f"{key}={value}" for key, value in sizes.items())], gpu)

    found = run_benchmark(
        Benchmark(
            kernels={name: partial(load, name) for name in kernels},
            gpus=tuple(load_gpu(name) for name in GPUS),
            seed=runs.seed,
            settings=settings,
            inputs=inputs,
            folder=runs.out,
            replay=runs.replay,
        ),
        say,
    )
    if json:
        print_json(found)
        return
    made = found["table"]
    rows = [
        (key, *(f"{one[k]:.2f}" for k in ("mean", "low", "high"))) for key, one in made.items() if type(one) is dict
    ]
    models, refused = ", ".join(found["models"]), f"{100 * made['refused']:.0f} % of the texts refused"
    title = f"{models}: {made['runs']} runs of {made['tasks']} tasks, {refused}"
    table(title, ("regret", "mean", *(f"{one} %" for one in INTERVAL)), rows, note=SIMULATED[runs.replay])


def _named(text: str) -> tuple[str, list[str]]:
    """Kernel and sizes of one word such as ``'gemm M=4096'``."""
    name, *sizes = shlex.split(text) or [""]
    return name, sizes


def _print_study(found: dict[str, Any], written: Path) -> None:
    rates = ("baseline_l2_hit_rate", "best_l2_hit_rate", "bound_l2_hit_rate")
    rows = [
        (row["kernel"], sizes_text(row["problem"]), row["label"], *(pct(row[name]) for name in rates))
        for row in found["rows"]
    ]
    columns = ("kernel", "sizes", "", "launch order\n[%]", "best\n[%]", "bound\n[%]")
    table(f"{found['which']} on {found['gpu']}", columns, rows, left=3, note=SIMULATED[found["replay"]])
    console(wide=True).print(f"written: {written}", markup=False)


app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
app.command("study")(study)

if __name__ == "__main__":
    main(app)
