"""``ceiling``: the best permutation that can be found, beside the best formula and the bound."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from swizzle_sim.cli.arguments import GpuName, Json, KernelName, Replay, Seed, Sizes

Evaluations = Annotated[int, typer.Option("--evaluations", min=1, help="Permutations to replay.")]
Formulas = Annotated[int, typer.Option("--formulas", min=1, help="Formulas to replay.")]
Swizzle = Annotated[str | None, typer.Option("--swizzle", metavar="FILE|FAMILY", help="A formula to take part.")]
Out = Annotated[Path | None, typer.Option("--out", "-o", help="Folder to write the permutation to, as a lookup table.")]


def ceiling(
    kernel: KernelName,
    sizes: Sizes = None,
    gpu: GpuName = "mi300x",
    replay: Replay = "lockstep",
    evaluations: Evaluations = 120,
    formulas: Formulas = 120,
    swizzle: Swizzle = None,
    seed: Seed = 0,
    out: Out = None,
    json: Json = False,
) -> None:
    """Search arbitrary permutations, not only formulas, and say how far the best formula is from them."""
    from swizzle_sim.cli.arguments import load_fitting, load_swizzle
    from swizzle_sim.cli.output import (
        SCORE_COLUMNS,
        SIMULATED,
        console,
        pct,
        print_json,
        score_cells,
        sizes_text,
        table,
    )
    from swizzle_sim.cli.proposed import say
    from swizzle_sim.tuning.ceiling import ceiling as find_ceiling
    from swizzle_sim.tuning.lookup import check_table_folder, write_table
    from xcd_model import gpu as load_gpu

    device = load_gpu(gpu)
    workload = load_fitting(kernel, sizes, device)
    given = load_swizzle(swizzle) if swizzle is not None else None
    if out:
        check_table_folder(out)
    found = find_ceiling(
        workload, device, replay=replay, formulas=formulas, evaluations=evaluations, swizzle=given, seed=seed, say=say
    )
    files = []
    if out:
        note = f"kernel {workload.name} {sizes_text(workload.problem)}, {device.name}: valid at this size alone"
        files = write_table(out, found.order, note)
    if json:
        about = {"kernel": workload.name, "gpu": device.name, "problem": dict(workload.problem), "replay": replay}
        print_json({**about, "kind": "simulated", "seed": seed, **found.as_dict(), "files": [str(f) for f in files]})
        return
    rows = [
        ("as launched", "identity", *score_cells(found.baseline)),
        ("best formula", found.formula_name, *score_cells(found.formula)),
        ("best permutation", found.found_by, *score_cells(found.permutation)),
        ("... from a table", "one extra load a workgroup", *score_cells(found.as_table)),
    ]
    title = f"{workload.name} {sizes_text(workload.problem)} on {device.title}"
    table(title, ("", "order", *SCORE_COLUMNS), rows, left=2, note=SIMULATED[replay])
    behind = 100 * (found.permutation.l2_hit_rate - found.formula.l2_hit_rate)
    out_console = console(wide=True)
    for line in (
        f"best formula: {behind:.2f} points below the best of {found.evaluations} permutations, "
        f"{100 * (found.bound - found.formula.l2_hit_rate):.2f} below the proven bound of {pct(found.bound)} %",
        f"cheapest assignment found: {pct(found.assigned_bound)} % with caches without end",
        *(str(file) for file in files),
    ):
        out_console.print(line, markup=False)
