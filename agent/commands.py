"""The commands ``lab study``, ``lab tune-prompt``, ``keep`` and ``mcp``, through ``swizzle_sim.commands``."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from swizzle_sim.cli.arguments import GpuName, Json, Seed, grouped
from swizzle_sim.cli.proposer_options import LlmOptions

if TYPE_CHECKING:
    from swizzle_sim.workload.kernels import Kernel

    from .settings import Inputs, Settings

Kernels = Annotated[list[str], typer.Option("--kernel", help="Kernel and sizes, such as 'gemm M=4096 N=4096'.")]
Train = Annotated[list[str], typer.Option("--train", help="Kernel to train on, with sizes; repeatable.")]
HeldOut = Annotated[list[str], typer.Option("--held-out", help="Kernel to measure on, with sizes.")]
Which = Annotated[str, typer.Argument(metavar="contexts|models|benchmark")]
Folder = Annotated[Path, typer.Option("--out", "-o", help="Folder of the study.")]
Replay = Annotated[str, typer.Option("--replay", help="Replay that the counts come from: lockstep or timed.")]
Rewarded = Annotated[
    str | None,
    typer.Option("--reward", metavar="NAME|FILE.py:FUNCTION", help="Reward of your own, of an attempt and its scorer."),
]


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
    from swizzle_sim.cli.output import print_json, say
    from xcd_model import gpu as load_gpu

    from .proposer import read_options
    from .study import Study, run_study

    settings, inputs = read_options(models.given(), runs.seed)
    if which == "benchmark":
        _benchmark(kernels, settings, inputs, runs, json)
        return
    device = load_gpu(runs.gpu)
    task = Study(
        which=which,
        kernels=tuple(_kernel(text, device.arch) for text in kernels),
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
    from functools import partial

    from swizzle_sim.cli.arguments import load_fitting
    from swizzle_sim.cli.output import SIMULATED, print_json, say, table
    from xcd_model import gpu as load_gpu

    from .benchmark import GPUS, INTERVAL, Benchmark, run_benchmark

    def load(text: str, sizes: Any, gpu: Any) -> Kernel:
        name, *typed = shlex.split(text) or [""]
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


def _kernel(text: str, arch: str) -> Kernel:
    from swizzle_sim.cli.arguments import load_kernel

    name, *sizes = shlex.split(text) or [""]
    return load_kernel(name, sizes, arch)


def _print_study(found: dict[str, Any], written: Path) -> None:
    from swizzle_sim.cli.output import SIMULATED, console, pct, sizes_text, table

    rates = ("baseline_l2_hit_rate", "best_l2_hit_rate", "bound_l2_hit_rate")
    rows = [
        (row["kernel"], sizes_text(row["problem"]), row["label"], *(pct(row[name]) for name in rates))
        for row in found["rows"]
    ]
    columns = ("kernel", "sizes", "", "launch order\n[%]", "best\n[%]", "bound\n[%]")
    table(f"{found['which']} on {found['gpu']}", columns, rows, left=3, note=SIMULATED[found["replay"]])
    console(wide=True).print(f"written: {written}", markup=False)


@dataclass(frozen=True)
class TuneOptions:
    """Options of a tuning."""

    calls: Annotated[int, typer.Option("--calls", min=1, help="Candidates that tuning may have judged.")] = 40
    gpu: GpuName = "mi300x"
    replay: Replay = "timed"
    seed: Seed = 0
    out: Folder = Path("tuned")
    reward: Rewarded = None


@grouped
def tune_prompt(train: Train, held_out: HeldOut, models: LlmOptions, options: TuneOptions, json: Json = False) -> None:
    """Tune the instructions of the propose question with GEPA; the first --model proposes, the last one reflects."""
    from swizzle_sim.cli.output import console, print_json, say, table
    from xcd_model import gpu as load_gpu

    from .extensions import REWARDS, load_own
    from .proposer import read_options
    from .tune import Tuning
    from .tune import tune_prompt as tune

    settings, inputs = read_options(models.given(), options.seed)
    device = load_gpu(options.gpu)
    task = Tuning(
        train=[_kernel(text, device.arch) for text in train],
        held_out=[_kernel(text, device.arch) for text in held_out],
        gpu=device,
        folder=options.out,
        settings=settings,
        calls=options.calls,
        prices=inputs.prices,
        replay=options.replay,
        reward=load_own(options.reward, REWARDS) if options.reward else None,
    )
    found = tune(task, say=say)
    if json:
        print_json({"program": str(found.program), "before": found.before, "after": found.after, "asks": found.asks})
        return
    rows = [(name, f"{found.before[name]:.3f}", f"{found.after[name]:.3f}") for name in found.before]
    table("Reward on the held-out kernels", ("kernel", "as shipped", "tuned"), rows, note="simulated; 0 to 1")
    console(wide=True).print(f"written: {found.program}; use it with --program {found.program}", markup=False)


KNOWN = ("baseline", "families", "search")  # proposers of orders that need no keeping
Kept = Annotated[int | None, typer.Option("--attempt", min=1, help="Number of another attempt to keep.")]
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="Run folder.")]
KeptName = Annotated[str | None, typer.Option("--name", help="Of the template; by default that of the run's kernel.")]


def keep(run: RunFolder, attempt: Kept = None, name: KeptName = None, json: Json = False) -> None:
    """Keep a run's best new order as a template with its literals as parameters, for the families of later runs."""
    from swizzle_sim.cli.output import console, print_json
    from swizzle_sim.search.history import History
    from swizzle_sim.search.kept import keep as kept
    from swizzle_sim.search.kept import write_kept
    from swizzle_sim.search.ranking import ranking_of
    from swizzle_sim.search.recorded import recorded_scorer
    from xcd_model.errors import RunError

    with History(run) as history:
        about, ranked = history.about, ranking_of(history.about, run).order(history)
    new = [one for one in ranked if (one.number == attempt if attempt else one.proposer not in KNOWN)]
    if not new:
        what = (
            f"no attempt {attempt} with a score"
            if attempt
            else "no new order to keep, only known families; --attempt N keeps one"
        )
        raise RunError(f"{run}: {what}; `swizzle-sim report` lists the attempts")
    best = new[0]
    template = kept(best, recorded_scorer(about), (name or about["kernel"]).replace("-", "_"))
    path = write_kept(template)
    if json:
        print_json({"kept": str(path), "template": template.text, "from": best.name})
        return
    console(wide=True).print(
        f"{template.text}written: {path}; the families of `swizzle-sim optimize` try it", markup=False
    )


def mcp() -> None:
    """Serve check, score, show and optimize to coding agents, by the Model Context Protocol on standard input."""
    from .mcp_server import serve

    serve()
