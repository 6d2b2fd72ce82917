"""Write docs/fidelity.md, fidelity.csv and the scatter plots: ``make fidelity``."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

from benchmarks.fidelity.page import page
from benchmarks.fidelity.predict import Prediction
from benchmarks.fidelity.scatter import scatter
from swizzle_sim.report.figures import png

PLOTTED = (("mi300x", "l2_hit_pct"), ("h200", "dram_read_bytes"), ("h200", "time_us"))
PANELS = 3  # variants drawn, the model first


def write(predictions: Sequence[Prediction], folder: Path) -> list[Path]:
    """Write page, table and pictures below a folder.

    Parameters
    ----------
    predictions : sequence of Prediction
    folder : Path
        Such as ``docs``; pictures go to ``pictures`` in it.

    Returns
    -------
    written : list of Path
    """
    pictures = folder / "pictures"
    pictures.mkdir(parents=True, exist_ok=True)
    written, links = [], []
    for gpu, quantity in PLOTTED:
        rows = [one for one in predictions if (one.row.gpu, one.row.quantity) == (gpu, quantity)]
        panels: dict[str, list[Prediction]] = {}
        for one in rows:
            panels.setdefault(one.variant, []).append(one)
        drawn = {name: ones for name, ones in panels.items() if any(one.value is not None for one in ones)}
        if drawn:
            path = pictures / f"fidelity-{gpu}-{quantity}.png"
            figure = scatter(gpu, quantity, dict(list(drawn.items())[:PANELS]))
            path.write_bytes(png(figure, note="predicted: simulated; measured: hardware counters"))
            written.append(path)
            links.append(f"pictures/{path.name}")
    (folder / "fidelity.md").write_text(page(predictions, links), encoding="utf-8")
    _csv(predictions, folder / "fidelity.csv")
    return [folder / "fidelity.md", folder / "fidelity.csv", *written]


def _csv(predictions: Sequence[Prediction], path: Path) -> None:
    columns = ("id", "gpu", "kernel", "workload", "order", "bijective", "trust", "quantity", "unit")
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*columns, "measured", "low", "high", "baseline", "variant", "predicted", "error"])
        for one in predictions:
            row = one.row
            writer.writerow(
                [*(getattr(row, name) for name in columns), row.measured, row.low, row.high]
                + ["" if row.baseline is None else round(row.baseline, 4), one.variant]
                + ["" if value is None else f"{value:.6g}" for value in (one.value, one.error)]
            )
