"""The commands ``study`` and ``tune-prompt``, plugged into `swizzle-sim` through ``swizzle_sim.commands``."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from swizzle_sim.cli.arguments import GpuName, Json, Seed
from swizzle_sim.cli.proposed import ApiBase, Candidates, Docs, Iterations, MaxDollars, Model, Prices, Temperature

if TYPE_CHECKING:
    from swizzle_sim.kernels import Kernel

Kernels = Annotated[list[str], typer.Option("--kernel", help="Kernel and sizes, such as 'gemm M=4096 N=4096'.")]
Train = Annotated[list[str], typer.Option("--train", help="Kernel to train on, with sizes; give it again for several.")]
HeldOut = Annotated[list[str], typer.Option("--held-out", help="Kernel to measure on, with sizes.")]
Which = Annotated[str, typer.Argument(metavar="contexts|models|progression|sizes")]
Size = Annotated[list[str] | None, typer.Option("--size", help="sizes: a problem to score on, 'M=2048 N=2048'.")]
Folder = Annotated[Path, typer.Option("--out", "-o", help="Folder of the study.")]
Counted = Annotated[str, typer.Option("--replay", help="Replay that the counts come from: lockstep or timed.")]
Calls = Annotated[int, typer.Option("--calls", min=1, help="Candidates that tuning may have judged.")]


def study(
    which: Which,
    kernels: Kernels,
    model: Model = None,
    api_base: ApiBase = None,
    sizes: Size = None,
    gpu: GpuName = "mi300x",
    replay: Counted = "timed",
    iterations: Iterations = None,
    candidates: Candidates = None,
    docs: Docs = None,
    temperature: Temperature = None,
    max_dollars: MaxDollars = None,
    prices: Prices = None,
    seed: Seed = 0,
    out: Folder = Path("studies"),
    json: Json = False,
) -> None:
    """Compare contexts, models, iterations or sizes over runs of the llm proposer; runs only what is missing."""
    from swizzle_sim.cli.arguments import parse_sizes
    from swizzle_sim.cli.output import print_json
    from swizzle_sim.cli.proposed import say
    from xcd_model import gpu as load_gpu

    from .contexts import read_docs
    from .providers import preflight
    from .settings import Inputs, Settings, load_prices
    from .study import Study, draw_study, run_study

    settings = None
    if model:
        limits = {"iterations": iterations, "candidates": candidates}
        given: dict[str, Any] = {key: value for key, value in limits.items() if value is not None}
        settings = Settings(
            models=tuple(model),
            api_base=api_base,
            temperature=temperature,
            max_dollars=max_dollars,
            seed=seed,
            **given,
        )
        preflight(settings.models, api_base)
    device = load_gpu(gpu)
    found = run_study(
        Study(
            which=which,
            kernels=tuple(_kernel(text, device.arch) for text in kernels),
            gpu=device,
            folder=out,
            settings=settings,
            inputs=Inputs(docs=read_docs(docs) if docs else None, prices=load_prices(prices)),
            replay=replay,
            sizes=tuple(parse_sizes(shlex.split(text)) for text in sizes or ()),
        ),
        say,
    )
    picture = draw_study(found, out / f"study-{which}.png")
    if json:
        print_json({**found, "picture": str(picture)})
    else:
        _print_study(found, picture)


def _kernel(text: str, arch: str) -> Kernel:
    from swizzle_sim.cli.arguments import load_kernel

    name, *sizes = shlex.split(text) or [""]
    return load_kernel(name, sizes, arch)


def _print_study(found: dict[str, Any], picture: Path) -> None:
    from swizzle_sim.cli.output import SIMULATED, console, pct, sizes_text, table

    rows = [
        (
            row["kernel"],
            sizes_text(row["problem"]),
            row["label"],
            pct(row["baseline_l2_hit_rate"]),
            pct(row["best_l2_hit_rate"]),
            pct(row["bound_l2_hit_rate"]),
        )
        for row in found["rows"]
    ]
    columns = ("kernel", "sizes", "", "launch order\n[%]", "best\n[%]", "bound\n[%]")
    table(f"{found['which']} on {found['gpu']}", columns, rows, left=3, note=SIMULATED[found["replay"]])
    console(wide=True).print(f"written: {picture} and {picture.with_suffix('.json')}", markup=False)


def tune_prompt(
    model: Model,
    train: Train,
    held_out: HeldOut,
    api_base: ApiBase = None,
    calls: Calls = 40,
    gpu: GpuName = "mi300x",
    replay: Counted = "lockstep",
    temperature: Temperature = None,
    prices: Prices = None,
    seed: Seed = 0,
    out: Folder = Path("tuned"),
    json: Json = False,
) -> None:
    """Tune the instructions of the propose question with GEPA; the first --model proposes, the last one reflects."""
    from swizzle_sim.cli.output import console, print_json, table
    from swizzle_sim.cli.proposed import say
    from xcd_model import gpu as load_gpu

    from .providers import preflight
    from .settings import Settings, load_prices
    from .tune import Tuning
    from .tune import tune_prompt as tune

    settings = Settings(models=tuple(model or ()), api_base=api_base, temperature=temperature, seed=seed)
    preflight(settings.models, api_base)
    device = load_gpu(gpu)
    train_on, hold_out = ([_kernel(text, device.arch) for text in texts] for texts in (train, held_out))
    task = Tuning(
        train=train_on,
        held_out=hold_out,
        gpu=device,
        folder=out,
        settings=settings,
        calls=calls,
        prices=load_prices(prices),
        replay=replay,
    )
    found = tune(task, say=say)
    if json:
        print_json({"program": str(found.program), "before": found.before, "after": found.after, "asks": found.asks})
        return
    rows = [(name, f"{found.before[name]:.3f}", f"{found.after[name]:.3f}") for name in found.before]
    table("Reward on the held-out kernels", ("kernel", "as shipped", "tuned"), rows, note="simulated; 0 to 1")
    console(wide=True).print(f"written: {found.program}; use it with --program {found.program}", markup=False)
