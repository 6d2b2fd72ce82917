"""Write fidelity.md, fidelity.csv and the plots: ``make fidelity``; and read predictions back from fidelity.csv."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from swizzle_sim.report.display.picture import png
from xcd_model.errors import SwizzleSimError

from ..predict import Prediction
from ..rows import Row
from ..split import half_of
from ..workloads.from_row import workload
from .page import page, tables_page
from .plots import residuals, scatter

PLOTTED = (
    ("mi300x", "l2_hit_pct"),
    ("mi355x", "l2_hit_pct"),
    ("mi355x", "l2_read_misses"),
    ("h200", "dram_read_bytes"),
    ("h200", "dram_write_bytes"),
    ("h200", "l2_read_hit_pct"),
    ("h200", "time_us"),
)
SCATTERED = (("mi300x", "l2_hit_pct"), ("h200", "dram_read_bytes"), ("h200", "time_us"))
PANELS = 3  # variants drawn, the model first
NOTE = "predicted: simulated; measured: hardware counters"


def write(predictions: Sequence[Prediction], folder: Path, *, rows: bool = True) -> list[Path]:
    """Write pages, pictures and, where they were replayed, ``rows`` below a folder."""
    pictures = folder / "pictures"
    pictures.mkdir(parents=True, exist_ok=True)
    drawn: dict[str, dict[str, Figure]] = {"Predicted against measured": {}, "Residuals": {}}
    for gpu, quantity in PLOTTED:
        panels = _panels(predictions, gpu, quantity)
        name = f"{gpu}-{quantity}.png"
        if panels and (gpu, quantity) in SCATTERED:
            chosen = dict(list(panels.items())[:PANELS])
            drawn["Predicted against measured"][f"fidelity-{name}"] = scatter(gpu, quantity, chosen)
        if panels:
            drawn["Residuals"][f"residuals-{name}"] = residuals(gpu, quantity, next(iter(panels.values())))
    for figures in drawn.values():
        for name, figure in figures.items():
            (pictures / name).write_bytes(png(figure, note=NOTE))
    links = {what: [f"pictures/{name}" for name in figures] for what, figures in drawn.items() if figures}
    (folder / "fidelity.md").write_text(page(predictions), encoding="utf-8")
    (folder / "fidelity-tables.md").write_text(tables_page(predictions, links), encoding="utf-8")
    if rows:
        _csv(predictions, folder / "fidelity.csv")
    return [
        folder / "fidelity.md",
        folder / "fidelity-tables.md",
        *([folder / "fidelity.csv"] if rows else []),
        *(folder / path for paths in links.values() for path in paths),
    ]


def _panels(predictions: Sequence[Prediction], gpu: str, quantity: str) -> dict[str, list[Prediction]]:
    """Rows that have an error, by variant."""
    panels: dict[str, list[Prediction]] = {}
    for one in predictions:
        if (one.row.gpu, one.row.quantity) == (gpu, quantity) and one.error is not None:
            panels.setdefault(one.variant, []).append(one)
    return panels


def _csv(predictions: Sequence[Prediction], path: Path) -> None:
    columns = ("id", "gpu", "kernel", "workload", "order", "bijective", "trust", "quantity", "unit")
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*columns, "half", "measured", "low", "high", "baseline", "variant", "predicted", "error"])
        for one in predictions:
            row = one.row
            writer.writerow(
                [*(getattr(row, name) for name in columns), half_of(row)]
                + [row.measured, row.low, row.high]
                + ["" if row.baseline is None else round(row.baseline, 4), one.variant]
                + ["" if value is None else f"{value:.6g}" for value in (one.value, one.error)]
            )


def read(path: Path, rows: Sequence[Row], variants: Sequence[str]) -> list[Prediction]:
    """Predictions of rows under variants as an earlier run wrote them, to six digits; nothing is replayed."""
    with path.open(encoding="utf-8", newline="") as file:
        kept = {(line["id"], line["variant"]): line["predicted"] for line in csv.DictReader(file)}
    found = []
    for variant in variants:
        for row in rows:
            if (row.id, variant) not in kept:
                raise SwizzleSimError(
                    f"{path}: no prediction of {row.id} under {variant}; replay the rows without --from"
                )
            value, note = kept[row.id, variant], workload(row).note if variant == variants[0] else ""
            counts = {"cut": note} if note else {}
            found.append(Prediction(row=row, variant=variant, value=float(value) if value else None, counts=counts))
    return found
