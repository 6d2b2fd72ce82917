"""The command of `swizzle_benchmarks.validation`: the model against measured counters."""

# ruff: noqa: PLC0415  typer alone is loaded before a command is chosen

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from swizzle_sim.cli.arguments import Json, grouped, known_gpus, known_kernels, offer

if TYPE_CHECKING:
    from .predict import Prediction
    from .rows import Row

WORST = 12

Gpu = Annotated[str, typer.Option("--gpu", help="Only rows of this GPU.", autocompletion=offer(known_gpus))]
Kernel = Annotated[str, typer.Option("--kernel", help="Only rows of this kernel.", autocompletion=offer(known_kernels))]
Rows = Annotated[str, typer.Option("--rows", help="Only rows whose id holds this text, such as :rm_chunk.")]
Half = Annotated[str, typer.Option("--half", help="Only rows of one half of the split: fit or held-out.")]
Variants = Annotated[list[str] | None, typer.Option("--variant", help="The model (timed) or an ablation; repeatable.")]
Quick = Annotated[bool, typer.Option("--quick", help="A few cheap rows, the model and its lockstep replay.")]
Out = Annotated[
    Path | None,
    typer.Option("--out", file_okay=False, help="Folder to write fidelity.md, fidelity.csv and pictures to."),
]
Sets = Annotated[
    list[str] | None, typer.Option("--set", help="Another constant: GPU.KEY=VALUE, such as mi300x.hbm.latency_ns=400.")
]
Processes = Annotated[int | None, typer.Option("--processes", min=1, help="Replays at a time; one a core by default.")]
From = Annotated[
    Path | None,
    typer.Option("--from", exists=True, dir_okay=False, help="A fidelity.csv to take predictions from: no replays."),
]
Again = Annotated[bool, typer.Option("--again", help="Replay even what is kept from an earlier run.")]


@dataclass(frozen=True)
class Comparison:
    """Rows that are compared, and the models they are compared with."""

    gpu: Gpu = ""
    kernel: Kernel = ""
    rows: Rows = ""
    half: Half = ""
    variant: Variants = None
    quick: Quick = False

    def variants(self) -> list[str]:
        """Models by name, each once."""
        from .variants import VARIANTS

        return list(dict.fromkeys(self.variant or (["timed", "lockstep"] if self.quick else VARIANTS)))

    def chosen(self) -> list[Row]:
        """Rows of the GPU, kernel, text and half."""
        from xcd_model.errors import UnknownName

        from .rows import all_rows, quick_rows

        rows = all_rows()
        for what, name, known in (
            ("GPU", self.gpu, {row.gpu for row in rows}),
            ("kernel", self.kernel, {row.kernel for row in rows}),
        ):
            if name and name not in known:
                raise UnknownName(f"measured {what}", name, known)
        rows = quick_rows(rows) if self.quick else rows
        chosen = [
            row for row in rows if self.gpu in ("", row.gpu) and self.kernel in ("", row.kernel) and self.rows in row.id
        ]
        if not chosen:
            raise UnknownName(
                "row", self.rows or f"{self.gpu} {self.kernel}", {re.split("[-@:]", row.id)[0] for row in rows}
            )
        return _of_half(chosen, self.half)


@grouped
def fidelity(
    what: Comparison = Comparison(),
    out: Out = None,
    sets: Sets = None,
    processes: Processes = None,
    again: Again = False,
    kept: From = None,
    json: Json = False,
) -> None:
    """Replay what hardware has measured and compare: targets, worst rows, and with --out the whole report."""
    from xcd_model.errors import SwizzleSimError

    from .page.report import read, write
    from .predict import predict_all, read_sets

    names = what.variants()
    if kept and sets:
        raise SwizzleSimError("--set: rows are not replayed with --from; leave one of them out")
    if kept:
        found = read(kept, what.chosen(), names)
    else:
        found = predict_all(what.chosen(), names, overrides=read_sets(sets or ()), processes=processes, again=again)
    written = write(found, out, rows=kept is None) if out else []
    if json:
        _print_json(found, names)
        return
    _print(found, names)
    for path in written:
        print(path)


def _of_half(rows: list[Row], half: str) -> list[Row]:
    from xcd_model.errors import SwizzleSimError, UnknownName

    from .split import HALVES, half_of

    wanted = half.replace("-", " ")
    if wanted and wanted not in HALVES:
        raise UnknownName("half", half, [name.replace(" ", "-") for name in HALVES])
    chosen = [row for row in rows if wanted in ("", half_of(row))]
    if not chosen:
        other = next(name for name in HALVES if name != wanted)
        raise SwizzleSimError(f"none of the {len(rows)} rows chosen is {wanted}: all are of the {other} half")
    return chosen


def _print(found: list[Prediction], variants: list[str]) -> None:
    from swizzle_sim.cli.output import table

    from .page.targets import checks

    model = [one for one in found if one.variant == variants[0]]
    reached = checks(model)
    if reached:
        rows = [(c.data, c.what, c.target, c.reached, "hit" if c.hit else f"missed by {c.missed_by}") for c in reached]
        table("Targets", ("data", "figure", "target", "reached", ""), rows, left=3)
    _print_halves(model)
    ranked = sorted((one for one in model if one.error is not None), key=lambda one: -abs(one.error or 0.0))
    others = {(one.row.id, one.variant): one for one in found}
    lines = []
    for one in ranked[:WORST]:
        values = [others[one.row.id, name].value for name in variants]
        cells = ["-" if value is None else f"{value:.5g}" for value in values]
        lines.append((one.row.id, one.row.trust, f"{one.row.measured:.5g}", f"{one.error:+.1f}", *cells))
    title = f"Worst of {len(ranked)} rows; errors in points for rates, else in percent"
    note = "measured: hardware counters; the rest: simulated"
    table(title, ("row", "trust", "measured", "error", *variants), lines, left=2, note=note)


def _print_halves(model: list[Prediction]) -> None:
    from swizzle_sim.cli.output import table

    from .page.split import summaries
    from .page.tables import SUMMARY

    columns = ("GPU", "quantity", "half", *SUMMARY)
    note = "which kernel is in which half, and why: benchmarks/validation/data/split.csv"
    table(f"Fit half and held-out half, {model[0].variant}", columns, summaries(model), left=3, note=note)


def _print_json(found: list[Prediction], variants: list[str]) -> None:
    from swizzle_sim.cli.output import print_json

    from .page.targets import checks

    rows: list[dict[str, Any]] = [
        {
            "id": one.row.id,
            "quantity": one.row.quantity,
            "unit": one.row.unit,
            "measured": one.row.measured,
            "variant": one.variant,
            "predicted": one.value,
            "error": one.error,
        }
        for one in found
    ]
    reached = {name: [c.as_dict() for c in checks([o for o in found if o.variant == name])] for name in variants}
    print_json({"kind": "simulated beside measured", "targets": reached, "rows": rows})
