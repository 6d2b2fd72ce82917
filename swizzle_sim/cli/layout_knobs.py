"""``optimize --tune layout``: orders together with the leading dimension of the kernel's matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from swizzle_sim.cli.arguments import Launch
    from swizzle_sim.cli.proposer_options import RunOptions


def tune_layout_knobs(launch: Launch, run: RunOptions, evaluations: int | None, json: bool) -> None:
    """Search orders with paddings, print the finalists of both replays, and what the launch has to do.

    Raises
    ------
    SearchError
        If the launch can choose no leading dimension, there is more than one objective, or an option does not apply.
    """
    from swizzle_sim.base.progress import Progress
    from swizzle_sim.cli.arguments import load_fitting
    from swizzle_sim.cli.output import (
        console,
        pct,
        print_json,
        score_cells,
        score_columns,
        simulated,
        sizes_text,
        table,
    )
    from swizzle_sim.search.layout import EVALUATIONS, tune_layout
    from swizzle_sim.search.ranking import default_objectives, read_objectives
    from xcd_model import gpu as load_gpu
    from xcd_model.errors import SearchError

    device = load_gpu(launch.gpu)
    given = read_objectives(run.objective) if run.objective else default_objectives(device.name, "timed")
    if len(given) > 1:
        raise SearchError("--tune layout has one objective", code="objective")
    if run.replay or run.out:
        raise SearchError(
            "--tune layout takes both replays and changes no source: leave --replay and --out out", code="tune"
        )
    work = load_fitting(launch.kernel, launch.sizes, device, run.compile)
    with Progress("tuning the layout", "replays") as progress:
        ranked, tried, refused = tune_layout(
            work, device, objective=given[0].name, evaluations=evaluations or EVALUATIONS, seed=run.seed,
            on_replay=progress,
        )  # fmt: skip
    if json:
        about: dict[str, Any] = {"kernel": work.name, "gpu": device.name, "problem": dict(work.problem)}
        about |= {"kind": "simulated", "objective": given[0].name, "evaluations": tried, "seed": run.seed}
        print_json({**about, "refused": refused, "ranked": [one.as_dict() for one in ranked]})
        return
    rows = [
        (
            "launch order" if one.order.name == "identity" else one.order.name,
            str(one.padding),
            pct(one.lockstep.l2_hit_rate),
            *score_cells(one.timed or one.lockstep),
        )
        for one in ranked
    ]
    columns = ("swizzle", "rows", "lockstep\nL2 hit\nrate [%]", *score_columns(device.name, "timed"))
    title = f"{work.name} {sizes_text(work.problem)} on {device.title}"
    table(title, columns, rows, left=2, note=simulated(device.name, "timed"))
    out = console(wide=True)
    out.print(f"best: {ranked[0].padding.instruction}", markup=False)
    out.print(f"{tried} settings replayed in lockstep, {len(ranked)} of them timed", markup=False)
    for name, why in refused.items():
        out.print(f"not tried: {name}: {why}", markup=False)
