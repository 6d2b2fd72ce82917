"""``optimize --tune loop``: orders together with the direction of the main loop and the cache policy of loads."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from swizzle_sim.cli.arguments import Launch
    from swizzle_sim.cli.proposer_options import RunOptions
    from swizzle_sim.search.loop import LoopSearch, Setting
    from swizzle_sim.workload.kernels import Kernel
    from xcd_model import Gpu


def tune_loop_knobs(launch: Launch, run: RunOptions, evaluations: int | None, json: bool) -> None:
    """Search orders with knobs, print the finalists of both replays, and write the best into the kernel's source.

    Raises
    ------
    SearchError
        If the kernel has no source or no knob, or there is more than one objective.
    RewriteError
        If the source cannot be written.
    """
    from swizzle_sim.base.progress import Progress
    from swizzle_sim.cli.arguments import load_fitting
    from swizzle_sim.cli.output import print_json
    from swizzle_sim.search.loop import EVALUATIONS, tune_loop
    from swizzle_sim.search.ranking import default_objectives, read_objectives
    from xcd_model import gpu as load_gpu
    from xcd_model.errors import SearchError

    device = load_gpu(launch.gpu)
    given = read_objectives(run.objective) if run.objective else default_objectives(device.name, "timed")
    if len(given) > 1:
        raise SearchError("--tune loop has one objective", code="objective")
    if run.replay:
        raise SearchError("--tune loop takes both replays: leave --replay out", code="tune")
    work = load_fitting(launch.kernel, launch.sizes, device, run.compile)
    with Progress("tuning the loop", "replays") as progress:
        found = tune_loop(
            work, device, objective=given[0].name, evaluations=evaluations or EVALUATIONS, seed=run.seed,
            on_replay=progress,
        )  # fmt: skip
    file = _write(run.out, work, device, found.ranked[0]) if run.out else None
    if json:
        about: dict[str, Any] = {"kernel": work.name, "gpu": device.name, "problem": dict(work.problem)}
        about |= {"kind": "simulated", "objective": given[0].name, "evaluations": found.tried, "seed": run.seed}
        ranked = [one.as_dict() for one in found.ranked]
        print_json({**about, "refused": found.refused, "ranked": ranked, "written": file and str(file)})
        return
    _print(work, device, found)
    if file:
        print(f"written: {file}")


def _print(work: Kernel, device: Gpu, found: LoopSearch) -> None:
    from swizzle_sim.cli.output import console, pct, score_cells, score_columns, simulated, sizes_text, table

    rows = [
        (
            "launch order" if one.order.name == "identity" else one.order.name,
            str(one.knobs),
            pct(one.lockstep.l2_hit_rate),
            *score_cells(one.timed or one.lockstep),
        )
        for one in found.ranked
    ]
    columns = ("swizzle", "loop", "lockstep\nL2 hit\nrate [%]", *score_columns(device.name, "timed"))
    title = f"{work.name} {sizes_text(work.problem)} on {device.title}"
    table(title, columns, rows, left=2, note=simulated(device.name, "timed"))
    out = console(wide=True)
    out.print(f"{found.tried} settings replayed in lockstep, {len(found.ranked)} of them timed", markup=False)
    for name, why in found.refused.items():
        out.print(f"not tried: {name}: {why}", markup=False)


def _write(folder: Path, work: Kernel, device: Gpu, best: Setting) -> Path:
    """Write the kernel with the best order and knobs into a folder; return the file."""
    from swizzle_sim.base.atomic_write import write_whole
    from swizzle_sim.capture.workload import workload
    from swizzle_sim.language import Swizzle
    from swizzle_sim.pricing.knobs import argument_names, emit_knobs
    from swizzle_sim.rewrite import rewrite_workload

    assert work.launch
    folder.mkdir(parents=True, exist_ok=True)
    text = work.triton_source
    if best.order.name != "identity":
        swizzle = Swizzle.parse(best.order.source, name=best.order.name)
        whole = workload(work.file or work.name, work.problem)
        text = rewrite_workload(whole, swizzle, num_xcds=device.xcds).text.decode("utf-8")
    trace = work.build_trace(device.l2.line_bytes)
    names = argument_names(trace, work.launch)
    axes, path = len(work.launch.grid), work.launch.path
    text = emit_knobs(text, work.launch.function, best.knobs, arguments=names, axes=axes, arch=device.arch, path=path)
    out = folder / f"{path.stem}_loop.py"
    write_whole(out, text.encode("utf-8"))
    return out
