"""``optimize --tune loop`` and ``--tune layout``: orders together with a setting of the kernel or of its launch."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from swizzle_sim.cli.arguments import Launch
    from swizzle_sim.cli.proposer_options import RunOptions
    from swizzle_sim.search.strategies.settings import Found, Setting
    from swizzle_sim.workload.kernels import Kernel
    from xcd_model import Gpu


def tune_settings(what: str, launch: Launch, run: RunOptions, evaluations: int | None, json: bool) -> None:
    """Search orders with settings, ``loop`` or ``layout``, and print the finalists of both replays.

    The best of the loop is written into the kernel's source; of the layout it is said what the launch has to do.
    """
    from swizzle_sim.base.progress import Progress
    from swizzle_sim.cli.arguments import load_fitting
    from swizzle_sim.cli.output import print_json
    from swizzle_sim.search.ranking import chosen_objectives
    from swizzle_sim.search.strategies.settings import tune
    from xcd_model import gpu as load_gpu
    from xcd_model.errors import SearchError

    device, loop = load_gpu(launch.gpu), what == "loop"
    given = chosen_objectives(run.objective, device.name, "timed")
    if len(given) > 1:
        raise SearchError(f"--tune {what} has one objective", code="objective")
    if run.replay and loop:
        raise SearchError("--tune loop takes both replays: leave --replay out", code="tune")
    if not loop and (run.replay or run.out):
        raise SearchError(
            "--tune layout takes both replays and changes no source: leave --replay and --out out", code="tune"
        )
    work = load_fitting(launch.kernel, launch.sizes, device, run.compile)
    how: dict[str, Any] = {"objective": given[0].name, "evaluations": evaluations, "seed": run.seed}
    with Progress(f"tuning the {what}", "replays") as progress:
        found = tune(what, work, device, **how, on_replay=progress)
    file = _write(run.out, work, device, found.ranked[0]) if loop and run.out else None
    if json:
        about: dict[str, Any] = {"kernel": work.name, "gpu": device.name, "problem": dict(work.problem)}
        about |= {"kind": "simulated", "objective": given[0].name, "evaluations": found.tried, "seed": run.seed}
        about |= {"refused": found.refused, "ranked": [one.as_dict() for one in found.ranked]}
        print_json({**about, **({"written": file and str(file)} if loop else {})})
        return
    said = [f"written: {file}"] if file else [] if loop else [f"best: {found.ranked[0].what.instruction}"]
    _print(work, device, found, "loop" if loop else "rows", said)


def _print(work: Kernel, device: Gpu, found: Found, what: str, said: list[str]) -> None:
    from swizzle_sim.cli.output import console, pct, score_cells, score_columns, simulated, sizes_text, table

    rows = [
        (
            "launch order" if one.order.name == "identity" else one.order.name,
            str(one.what),
            pct(one.lockstep.l2_hit_rate),
            *score_cells(one.timed or one.lockstep),
        )
        for one in found.ranked
    ]
    columns = ("swizzle", what, "lockstep\nL2 hit\nrate [%]", *score_columns(device.name, "timed"))
    title = f"{work.name} {sizes_text(work.problem)} on {device.title}"
    table(title, columns, rows, left=2, note=simulated(device.name, "timed"))
    counted = f"{found.tried} settings replayed in lockstep, {len(found.ranked)} of them timed"
    for line in (*said, counted, *(f"not tried: {name}: {why}" for name, why in found.refused.items())):
        console(wide=True).print(line, markup=False)


def _write(folder: Path, work: Kernel, device: Gpu, best: Setting) -> Path:
    """Write the kernel with the best order and knobs into a folder; return the file."""
    from swizzle_sim.base.atomic_write import write_whole
    from swizzle_sim.capture.workload import workload
    from swizzle_sim.pricing.knobs import argument_names, emit_knobs
    from swizzle_sim.rewrite import rewrite_workload

    assert work.launch
    folder.mkdir(parents=True, exist_ok=True)
    text = work.triton_source
    if best.order.name != "identity":
        whole = workload(work.file or work.name, work.problem)
        text = rewrite_workload(whole, best.order.swizzle, num_xcds=device.xcds).text.decode("utf-8")
    trace = work.build_trace(device.l2.line_bytes)
    names = argument_names(trace, work.launch)
    axes, path = len(work.launch.grid), work.launch.path
    text = emit_knobs(text, work.launch.function, best.what, arguments=names, axes=axes, arch=device.arch, path=path)
    out = folder / f"{path.stem}_loop.py"
    write_whole(out, text.encode("utf-8"))
    return out
