"""The commands ``lab tune-prompt``, ``keep`` and ``mcp``, through ``swizzle_sim.commands``."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from swizzle_sim.cli.arguments import GpuName, Json, Seed, grouped
from swizzle_sim.cli.proposer_options import LlmOptions

if TYPE_CHECKING:
    from swizzle_sim.workload.kernels import Kernel

Train = Annotated[list[str], typer.Option("--train", help="Kernel to train on, such as 'gemm M=4096'; repeatable.")]
HeldOut = Annotated[list[str], typer.Option("--held-out", help="Kernel to measure on, with sizes.")]
Folder = Annotated[Path, typer.Option("--out", "-o", help="Folder of the tuning.")]
Replay = Annotated[str, typer.Option("--replay", help="Replay that the counts come from: lockstep or timed.")]
Rewarded = Annotated[
    str | None,
    typer.Option("--reward", metavar="NAME|FILE.py:FUNCTION", help="Reward of your own, of an attempt and its scorer."),
]


def _kernel(text: str, arch: str) -> Kernel:
    from swizzle_sim.cli.arguments import load_kernel

    name, *sizes = shlex.split(text) or [""]
    return load_kernel(name, sizes, arch)


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
    from swizzle_sim.search.extensions import load_own
    from xcd_model import gpu as load_gpu

    from .proposer import read_options
    from .tune import Tuning
    from .tune import tune_prompt as tune
    from .verifiable import REWARDS

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
