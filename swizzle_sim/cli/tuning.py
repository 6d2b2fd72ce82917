"""``optimize --proposer ceiling`` and ``--tune``: arbitrary permutations; tiles, the main loop or the layout."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from swizzle_sim.base.atomic_write import write_whole
from swizzle_sim.base.interruption import go_on_with
from swizzle_sim.base.progress import Progress
from swizzle_sim.cli.arguments import (
    Launch,
    load_fitting,
    load_kernel,
)
from swizzle_sim.cli.output import line, pct, print_json, score_table, simulated, sizes_text, title_of
from swizzle_sim.cli.proposer_options import as_typed
from swizzle_sim.search.jobs import FILE, PointStore
from swizzle_sim.search.ranking import chosen_objectives, read_objectives
from xcd_model.errors import SearchError, UnknownName

if TYPE_CHECKING:
    from swizzle_sim.cli.proposer_options import RunOptions
    from swizzle_sim.search.strategies.settings import Found, Setting
    from swizzle_sim.workload.kernels import Kernel
    from xcd_model import Gpu

EVALUATIONS, TOP = 40, 5
TAKES = {
    "tiles": ("evaluations", "sampler"),
    "configs": ("evaluations", "max_minutes"),
    "loop": ("evaluations",),
    "layout": ("evaluations",),
}  # things to tune, and options


def find_ceiling(launch: Launch, run: RunOptions, evaluations: int | None, json: bool) -> None:
    """Search arbitrary permutations, not only formulas, and print how far the best formula is from them.

    Nothing is stored but the permutation, as a lookup table in ``--out``.
    """
    from swizzle_sim.search.lookup import check_table_folder, write_table
    from swizzle_sim.search.strategies.ceiling import ceiling

    if run.resume or run.objective:
        raise SearchError("--proposer ceiling has no run to go on with, and one objective", code="tune")
    workload, device = launch.load(run.compile)
    replay, out = run.replay or "timed", run.out
    if out:
        check_table_folder(out)
    spend: dict[str, Any] = {"seed": run.seed}
    spend |= {"formulas": evaluations, "evaluations": evaluations} if evaluations else {}
    with Progress("searching formulas", "evaluations") as progress:
        found = ceiling(workload, device, replay=replay, **spend, on_progress=progress)
    files = []
    if out:
        note = f"kernel {workload.name} {sizes_text(workload.problem)}, {device.name}: valid at this size alone"
        files = write_table(out, found.order, note)
    if json:
        about = {"kernel": workload.name, "gpu": device.name, "problem": dict(workload.problem), "replay": replay}
        print_json(
            {**about, "kind": "simulated", "seed": run.seed, **found.as_dict(), "files": [str(f) for f in files]}
        )
        return
    rows = [
        ("launch order", "identity", found.baseline),
        ("best formula", found.formula_name, found.formula),
        ("best permutation", found.found_by, found.permutation),
        ("... from a lookup table", "one extra load a workgroup", found.as_table),
    ]
    score_table(title_of(workload, device), ("", "swizzle"), rows, simulated(device.name, replay))
    behind = 100 * (found.permutation.l2_hit_rate - found.formula.l2_hit_rate)
    for said in (
        f"best formula: {behind:.2f} points below the best permutation of {found.evaluations}, "
        f"{100 * (found.bound - found.formula.l2_hit_rate):.2f} below the proven bound of {pct(found.bound)} %",
        f"cheapest assignment found: {pct(found.assigned_bound)} % with infinite caches",
        *(str(file) for file in files),
    ):
        line(said)


def tune_kernel(
    what: str, launch: Launch, run: RunOptions, llm: Mapping[str, Any], search: Mapping[str, Any], json: bool
) -> None:
    """Search launch configurations and print the best: what ``optimize --tune`` does."""
    _check(what, llm, search)
    if what == "configs":
        from swizzle_sim.cli.configurations import tune_configurations

        tune_configurations(launch, run, search.get("evaluations"), llm.get("max_minutes"), json)
    elif what in ("loop", "layout"):
        _tune_settings(what, launch, run, search.get("evaluations"), json)
    else:
        _tune_tiles(launch, run, search, json)


def _tune_tiles(launch: Launch, run: RunOptions, search: Mapping[str, Any], json: bool) -> None:
    """Search tiles, warps, stages and GROUP_M, and print the best."""
    from swizzle_sim.search.samplers import make_sampler
    from swizzle_sim.search.strategies.tiles import FORMULA, TileSpace, has_compiler, tune_tiles
    from xcd_model import gpu as load_gpu

    objectives = read_objectives(run.objective or "time")  # tiles of another size have other requests
    if len(objectives) > 1:
        raise SearchError("--tune tiles has one objective", code="objective")
    device, replay = load_gpu(launch.gpu), run.replay or "timed"
    work = load_kernel(launch.kernel, launch.sizes, device.arch)
    space = TileSpace(work, device, has_compiler(device))
    budget = search.get("evaluations", EVALUATIONS)
    sampler = make_sampler(space, search.get("sampler", "tpe"), run.seed)
    go_on_with(run.resume or run.out, FILE)
    with (
        PointStore(run.resume or run.out, resume=run.resume is not None) as store,
        Progress("tuning tiles", "evaluations") as progress,
    ):

        def on_replay(done: int, budget: int) -> None:
            progress(done, budget, note=f"{sum(space.pruned.values())} configurations pruned")

        how_many: dict[str, Any] = {"evaluations": budget, "replay": replay, "seed": run.seed, "on_replay": on_replay}
        ranked = tune_tiles(space, sampler, objectives[0], store, **how_many)
    how = f"compiled for {device.arch} with Triton" if space.compiles else FORMULA
    if json:
        about: dict[str, Any] = {"kernel": work.name, "gpu": device.name, "problem": dict(work.problem)}
        about |= {"replay": replay, "seed": run.seed}
        found = {"objective": objectives[0].name, "evaluations": len(ranked), "pruned": dict(space.pruned)}
        print_json({**about, "kind": "simulated", **found, "resources": how, "best": ranked[:TOP]})
        return
    _print_tiles(work.name, device, ranked, space.pruned, how, replay)


def _check(what: str, llm: Mapping[str, Any], search: Mapping[str, Any]) -> None:
    if what not in TAKES:
        raise UnknownName("thing to tune", what, list(TAKES))
    if wrong := [key for key in (*llm, *search) if key not in TAKES[what]]:
        verb = "do" if len(wrong) > 1 else "does"
        raise SearchError(f"{as_typed(wrong)} {verb} not apply to --tune {what}: leave it out", code="tune")


def _print_tiles(
    name: str, device: Gpu, ranked: list[dict[str, Any]], pruned: Mapping[str, int], how: str, replay: str
) -> None:
    from swizzle_sim.pricing.scores import Score

    names = list(ranked[0]["values"])
    rows = [(*(str(row["values"][name]) for name in names), Score.from_dict(row["score"])) for row in ranked[:TOP]]
    score_table(f"{name} on {device.title}, tiles", names, rows, simulated(device.name, replay), left=0)
    counted = ", ".join(f"{n} {why}" for why, n in sorted(pruned.items())) or "none"
    print(f"{len(ranked)} configurations replayed; pruned before any replay: {counted}")
    print(f"registers and LDS: {how}; GROUP_M is contiguous+group_m, 0 the launch order")


def _tune_settings(what: str, launch: Launch, run: RunOptions, evaluations: int | None, json: bool) -> None:
    """Search orders with settings, ``loop`` or ``layout``, and print the finalists of both replays.

    The best of the loop is written into the kernel's source; of the layout it is said what the launch has to do.
    """
    from swizzle_sim.search.strategies.settings import tune
    from xcd_model import gpu as load_gpu

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
    file = _write_loop(run.out, work, device, found.ranked[0]) if loop and run.out else None
    if json:
        about: dict[str, Any] = {"kernel": work.name, "gpu": device.name, "problem": dict(work.problem)}
        about |= {"kind": "simulated", "objective": given[0].name, "evaluations": found.tried, "seed": run.seed}
        about |= {"refused": found.refused, "ranked": [one.as_dict() for one in found.ranked]}
        print_json({**about, **({"written": file and str(file)} if loop else {})})
        return
    said = [f"written: {file}"] if file else [] if loop else [f"best: {found.ranked[0].what.instruction}"]
    _print_settings(work, device, found, "loop" if loop else "rows", said)


def _print_settings(work: Kernel, device: Gpu, found: Found, what: str, said: list[str]) -> None:
    rows = [
        (
            "launch order" if one.order.name == "identity" else one.order.name,
            str(one.what),
            pct(one.lockstep.l2_hit_rate),
            one.timed or one.lockstep,
        )
        for one in found.ranked
    ]
    heads = ("swizzle", what, "lockstep\nL2 hit\nrate [%]")
    score_table(title_of(work, device), heads, rows, simulated(device.name, "timed"), left=2)
    counted = f"{found.tried} settings replayed in lockstep, {len(found.ranked)} of them timed"
    for one in (*said, counted, *(f"not tried: {name}: {why}" for name, why in found.refused.items())):
        line(one)


def _write_loop(folder: Path, work: Kernel, device: Gpu, best: Setting) -> Path:
    """Write the kernel with the best order and knobs into a folder; return the file."""
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
