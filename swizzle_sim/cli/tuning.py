"""``optimize --proposer ceiling``: arbitrary permutations; ``--tune``: the levers of a kernel, alone and together."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from swizzle_sim.base.interruption import go_on_with
from swizzle_sim.base.progress import Progress
from swizzle_sim.cli.arguments import Launch
from swizzle_sim.cli.output import IN_BRIEF, line, pct, print_json, score_table, simulated, sizes_text, table, title_of
from swizzle_sim.cli.proposer_options import as_typed
from swizzle_sim.search.jobs import FILE, PointStore
from swizzle_sim.search.ranking import read_objectives
from xcd_model.errors import SearchError, UnknownName

if TYPE_CHECKING:
    from swizzle_sim.cli.proposer_options import RunOptions
    from swizzle_sim.tuning.answer import Answer
    from swizzle_sim.tuning.joint import Point, Tuned
    from swizzle_sim.tuning.written import Written

OF_TUNE = ("evaluations", "max_minutes")


def find_ceiling(launch: Launch, run: RunOptions, evaluations: int | None, json: bool) -> None:
    """Search arbitrary permutations, not only formulas, and print how far the best formula is from them.

    Nothing is stored but the permutation, as a lookup table in ``--out``.
    """
    from swizzle_sim.search.strategies.ceiling import ceiling, check_table_folder, write_table

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
    names: str, launch: Launch, run: RunOptions, llm: Mapping[str, Any], search: Mapping[str, Any], json: bool
) -> None:
    """Search the levers of a kernel and print which of them brings what: what ``optimize --tune`` does."""
    from swizzle_sim.tuning.answer import Answer
    from swizzle_sim.tuning.levers import KNOWN
    from swizzle_sim.tuning.written import write_tuned

    levers = tuple(dict.fromkeys(name.strip() for name in names.split(",")))
    if unknown := [name for name in levers if name not in KNOWN]:
        raise UnknownName("lever", unknown[0], KNOWN)
    if wrong := [key for key in (*llm, *search) if key not in OF_TUNE]:
        verb = "do" if len(wrong) > 1 else "does"
        raise SearchError(f"{as_typed(wrong)} {verb} not apply to --tune: leave it out", code="tune")
    go_on_with(run.resume or run.out, FILE)
    with PointStore(run.resume or run.out, resume=run.resume is not None) as store:
        answer = Answer(_tuned(levers, launch, run, llm, search, store))
        folder = run.resume or run.out
        with Progress("writing the instance, and comparing it in the interpreter"):
            written = write_tuned(answer, folder) if folder else None
    if json:
        print_json({**_about(answer), **answer.as_dict(), "written": written and written.as_dict()})
        return
    _print(launch, answer, written)


def _tuned(
    names: tuple[str, ...],
    launch: Launch,
    run: RunOptions,
    llm: Mapping[str, Any],
    search: Mapping[str, Any],
    store: PointStore,
) -> Tuned:
    from swizzle_sim.capture.process import shared_worker
    from swizzle_sim.search.loop import Budget
    from swizzle_sim.tuning.joint import COMPILES, EVALUATIONS, tune
    from swizzle_sim.tuning.levers import OPTIONS, Levers
    from swizzle_sim.tuning.template import Template

    objectives = read_objectives(run.objective or "time")  # tiles of another size have other requests
    if len(objectives) > 1:
        raise SearchError("--tune has one objective", code="objective")
    began, minutes = time.monotonic(), llm.get("max_minutes", float("inf"))
    work, device = launch.load(run.compile)
    evaluations = search.get("evaluations", EVALUATIONS)
    with shared_worker(), Progress("tuning", "evaluations") as progress:
        how: dict[str, Any] = {"compile": run.compile, "options": OPTIONS in names}
        template = Template(work, device, most_compiles=COMPILES * evaluations, **how)
        levers = Levers(template, objectives[0], run.replay or "timed", run.seed, run.jitter)

        def on_replay(arm: str, done: int, budget: int) -> None:
            progress(done, budget, what=f"tuning: {arm}", note=f"{template.compiled} compiles")

        budget = Budget(threads=run.threads or os.cpu_count() or 1, end_s=began + 60 * minutes)
        chosen = [name for name in names if name != OPTIONS]
        how = {"evaluations": evaluations, "budget": budget, "on_replay": on_replay}
        return tune(levers, chosen or ["configuration"], store, **how)


def _about(answer: Answer) -> dict[str, Any]:
    levers = answer.tuned.levers
    base = levers.template.base
    about: dict[str, Any] = {"kernel": base.name, "kernel_file": base.file or None, "gpu": levers.template.gpu.name}
    about |= {"problem": dict(base.problem), "replay": levers.replay, "seed": levers.seed, "kind": "simulated"}
    return {**about, "objective": levers.objective.name}


def _print(launch: Launch, answer: Answer, written: Written | None) -> None:
    levers, template, best = answer.tuned.levers, answer.tuned.levers.template, answer.best
    line(answer.what)
    for one in answer.tuned.findings:
        line(f"why: {one.words}")
    arms = [(arm.name if len(arm.levers) > 1 else f"{arm.name} alone", best[arm.name]) for arm in answer.tuned.arms]
    rows = [("as it is", answer.tuned.base), *arms]
    shown = [
        (
            lever,
            "launch order" if point.order == "identity" else point.order,
            template.text(point.values),
            *_figures(point),
            point.score,
        )
        for lever, point in rows
    ]
    heads = ("lever", "swizzle", "change", *FIGURES)
    title = f"{title_of(template.base, template.gpu)}, by lever"
    score_table(title, heads, shown, simulated(template.gpu.name, levers.replay), left=3, columns=IN_BRIEF)
    if len(answer.front) > 1:
        cells = [[template.text(one.values), *_figures(one), f"{one.score.time_us:.1f}"] for one in answer.front]
        table("None has less LDS and is faster", ("change", *FIGURES, "time [µs]"), cells)
    for said in (*_remarks(answer), *(written.lines if written else _next(launch, answer))):
        line(said)


FIGURES = ("workgroups", "WG/CU", "VGPRs", "LDS [B]", "pipelined")


def _figures(point: Point) -> list[str]:
    found = [str(point.workgroups), *(str(point.resources[key]) for key in ("workgroups_per_cu", "vgprs", "lds_bytes"))]
    return [*found, "yes" if point.resources["loads_per_step"] else "no"]


def _remarks(answer: Answer) -> list[str]:
    """What was spent, pruned and refused."""
    tuned, template = answer.tuned, answer.tuned.levers.template
    spent = ", ".join(f"{arm.name} {len(arm.points)}" for arm in tuned.arms)
    screened = sum(arm.screened for arm in tuned.arms)
    found = [f"evaluations: {spent}; {template.compiled} compiles; {screened} screened by their instructions alone"]
    found += [f"pruned: {count} {reason}, such as {template.why[reason]}" for reason, count in template.pruned.items()]
    refused = [(name, why) for name, why in tuned.levers.refused.items() if name.split()[0] in tuned.asked]
    return [*found, *(f"not tried: {name}: {why}" for name, why in refused)]


def _next(launch: Launch, answer: Answer) -> list[str]:
    """The command that writes the instance."""
    if not answer.lever:
        return []
    words = ["swizzle-sim", "optimize", launch.kernel, *(launch.sizes or ()), "--gpu", launch.gpu, "--tune"]
    return [f"next, to write and check the kernel so: {shlex.join([*words, '-o', 'FOLDER'])}"]
