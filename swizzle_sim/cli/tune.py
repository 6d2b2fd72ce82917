"""``optimize --tune tiles``: tile sizes, warps, stages and GROUP_M together."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

EVALUATIONS, TOP = 40, 5


def tune_kernel(
    what: str,
    name: str,
    sizes: list[str] | None,
    gpu: str,
    replay: str,
    seed: int,
    where: tuple[Path | None, Path | None],
    options: Mapping[str, Any],
    tuning: Mapping[str, Any],
    json: bool,
) -> None:
    """Search launch configurations and print the best; ``where`` is (out, resume).

    Raises
    ------
    SearchError
        If there is nothing of that name to tune, the kernel has no tiles, or an option has no say here.
    """
    from swizzle_sim.cli.arguments import load_kernel
    from swizzle_sim.cli.output import print_json
    from swizzle_sim.cli.proposed import say
    from swizzle_sim.scoring import Score
    from swizzle_sim.tuning.jobs import PointStore
    from swizzle_sim.tuning.objectives import read_objectives
    from swizzle_sim.tuning.samplers import make_sampler
    from swizzle_sim.tuning.tiles import FORMULA, TileSpace, as_row, has_compiler
    from xcd_model import gpu as load_gpu
    from xcd_model.errors import SearchError

    _check(what, options, tuning)
    objectives = read_objectives(tuning.get("objective", "time"))  # tiles of another size have other requests
    if len(objectives) > 1:
        raise SearchError("--tune tiles has one objective", code="objective")
    device = load_gpu(gpu)
    work = load_kernel(name, sizes, device.arch)
    space = TileSpace(work, device, has_compiler(device))
    budget = tuning.get("evaluations", EVALUATIONS)
    sampler = make_sampler(space, tuning.get("sampler", "tpe"), seed)
    out, resume = where
    rows: list[dict[str, Any]] = []
    with PointStore(resume or out, resume=resume is not None) as store:
        while len(rows) < budget and (suggested := sampler.suggest()) is not None:
            handle, values = suggested
            point = {"kernel": work.name, "problem": dict(work.problem), "gpu": device.name, "replay": replay} | {
                "seed": seed,
                "values": values,
            }
            row = store.find(point)
            if row is None:
                row = as_row(*space.score(values, replay=replay, seed=seed), space.fit(values).resources)
                store.add(point, row)
            rows.append({"values": values, **row})
            sampler.tell(handle, (objectives[0].cost(Score.from_dict(row["score"])),))
            if len(rows) % 10 == 0:
                say(f"{len(rows)} of {budget} evaluations, {sum(space.pruned.values())} configurations pruned")
    ranked = sorted(rows, key=lambda row: objectives[0].cost(Score.from_dict(row["score"])))
    how = f"compiled for {device.arch} with Triton" if space.compiles else FORMULA
    if json:
        about = {"kernel": work.name, "gpu": device.name, "problem": dict(work.problem), "replay": replay, "seed": seed}
        found = {"objective": objectives[0].name, "evaluations": len(rows), "pruned": dict(space.pruned)}
        print_json({**about, "kind": "simulated", **found, "resources": how, "best": ranked[:TOP]})
        return
    _print(f"{work.name} on {device.title}, tiles", ranked, space.pruned, how, replay)


def _check(what: str, options: Mapping[str, Any], tuning: Mapping[str, Any]) -> None:
    from swizzle_sim.cli.tuning_options import as_typed
    from xcd_model.errors import SearchError, UnknownName

    if what != "tiles":
        raise UnknownName("thing to tune", what, ["tiles"])
    no_say = [key for key, value in options.items() if value is not None]
    no_say += [key for key in tuning if key in ("templates", "sizes", "held_out")]
    if no_say:
        raise SearchError(
            f"{as_typed(no_say)} {'have' if len(no_say) > 1 else 'has'} no say in --tune tiles", code="tune"
        )


def _print(title: str, ranked: list[dict[str, Any]], pruned: Mapping[str, int], how: str, replay: str) -> None:
    from swizzle_sim.cli.output import SCORE_COLUMNS, SIMULATED, score_cells, table
    from swizzle_sim.scoring import Score

    names = list(ranked[0]["values"])
    rows = [
        [*(str(row["values"][name]) for name in names), *score_cells(Score.from_dict(row["score"]))]
        for row in ranked[:TOP]
    ]
    table(title, [*names, *SCORE_COLUMNS], rows, left=0, note=SIMULATED[replay])
    counted = ", ".join(f"{n} {why}" for why, n in sorted(pruned.items())) or "none"
    print(f"{len(ranked)} configurations replayed; pruned before any replay: {counted}")
    print(f"registers and LDS: {how}; GROUP_M is contiguous+group_m, 0 the launch order")
