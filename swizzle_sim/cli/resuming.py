"""`as_before`: what ``--resume RUN`` need not be told again, from the record of the run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from swizzle_sim.cli.arguments import Launch, parse_sizes
from swizzle_sim.cli.proposer_options import RunOptions, SearchOptions


def as_before(
    folder: Path, launch: Launch, proposer: str, run: RunOptions, search: SearchOptions
) -> tuple[Launch, str, RunOptions, SearchOptions]:
    """Arguments of a command that goes on with a run; those not typed are the run's own."""
    from swizzle_sim.search.history import History
    from xcd_model import gpu_names

    with History(folder) as history:
        about = history.about
    kernel = launch.kernel or about["kernel_file"] or about["kernel"]
    sizes = launch.sizes
    if not kernel.endswith(".npz") and launch.kernel in ("", about["kernel"], about["kernel_file"]):
        known = {**about["problem"], **(parse_sizes(sizes) if sizes else {})}
        sizes = [f"{name}={value}" for name, value in known.items()]
    if launch.gpu == Launch.gpu and about["gpu"] in gpu_names():
        launch = replace(launch, gpu=about["gpu"])
    if run.replay is None and "objectives" in about:
        run = replace(run, replay=about["replay"])
    run = replace(
        run,
        objective=run.objective or ",".join(about.get("objectives", ())) or None,
        seed=run.seed or about["seed"],
        jitter=run.jitter or about["jitter_ns"],
    )
    if proposer == "families":
        proposer = _proposer_of(about)
    if settings := about.get("search"):
        sampler, evaluations = search.sampler or settings["sampler"], search.evaluations or settings["evaluations"]
        search = replace(search, sampler=sampler, evaluations=evaluations) if proposer == "search" else search
    elif "strategy" in about:
        search = replace(search, evaluations=search.evaluations or about["evaluations"])
    return replace(launch, kernel=kernel, sizes=sizes), proposer, run, search


def _proposer_of(about: dict[str, Any]) -> str:
    if "settings" in about:
        return "two-stage" if about["settings"].get("stage_two") else "llm"
    return about.get("strategy") or ("search" if "search" in about else "families")
