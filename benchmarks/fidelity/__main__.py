"""Predict some rows and print them: ``python -m benchmarks.fidelity paper/stencil --variant timed,lockstep``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from benchmarks.fidelity.predict import Prediction, predict_all, read_sets
from benchmarks.fidelity.rows import all_rows
from benchmarks.fidelity.split import HALVES, place_of
from benchmarks.fidelity.variants import VARIANTS
from xcd_model.errors import SpecError, UnknownName


def main() -> None:
    """Print rows whose id holds any of the words, worst first."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fidelity", description=__doc__)
    parser.add_argument("words", nargs="*", default=[""], help="parts of row ids, such as paper/stencil or :rm_chunk")
    parser.add_argument("--variant", default="timed", help=f"any of {', '.join(VARIANTS)}, with commas")
    parser.add_argument("--quantity", default="", help="part of the name of a quantity, such as dram_read")
    parser.add_argument("--half", choices=[name.replace(" ", "-") for name in HALVES], help="of the split")
    parser.add_argument("--set", action="append", default=[], metavar="GPU.KEY=VALUE", help="mi300x.hbm.latency_ns=600")
    parser.add_argument("--processes", type=int)
    parser.add_argument("--again", action="store_true", help="replay even what is on disk")
    parser.add_argument("--in-order", action="store_true", help="rows as in the tables, not worst first")
    asked = parser.parse_args()
    rows = [row for row in all_rows() if any(word in row.id for word in asked.words) and asked.quantity in row.quantity]
    half = asked.half and asked.half.replace("-", " ")
    rows = [row for row in rows if half in (None, place_of(row.gpu, row.kernel).half)]
    variants = asked.variant.split(",")
    if not rows:
        parser.error(f"no row has any of {', '.join(asked.words)} in its id, of the quantity and half asked for")
    try:
        overrides = read_sets(asked.set)
        found = predict_all(rows, variants, overrides=overrides, processes=asked.processes, again=asked.again)
    except (SpecError, UnknownName) as error:
        parser.error(str(error))
    print(table(found, variants, in_order=asked.in_order))


def table(predictions: Sequence[Prediction], variants: Sequence[str], *, in_order: bool = False) -> str:
    """Rows as text, one column a variant: predicted value and error."""
    by_row: dict[str, dict[str, Prediction]] = {}
    for one in predictions:
        by_row.setdefault(one.row.id, {})[one.variant] = one
    lines = list(by_row.values())
    if not in_order:
        lines.sort(key=lambda line: -abs(line[variants[0]].error or 0.0))
    text = [f"{'row':64} {'trust':5} {'measured':>14} " + " ".join(f"{name:>26}" for name in variants)]
    for line in lines:
        row = line[variants[0]].row
        cells = [f"{row.id:64} {row.trust:5} {row.measured:14.6g} "]
        for name in variants:
            one = line[name]
            shown = "-" if one.value is None else f"{one.value:.6g} ({one.error:+.1f}) {one.counts['seconds']:5.1f}s"
            cells.append(f"{shown:>26} ")
        text.append("".join(cells))
    for name in variants:
        errors = [abs(line[name].error) for line in lines if line[name].error is not None]
        if errors:
            text.append(f"{name}: mean absolute error {sum(errors) / len(errors):.2f} over {len(errors)} rows")
    return "\n".join(text)


if __name__ == "__main__":
    main()
