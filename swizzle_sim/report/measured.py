"""Agreement with hardware, where measurements are stored with a run, as strings for the page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from swizzle_sim.base.text import cut, gigabytes, microseconds, percent
from swizzle_sim.hardware.agreement import Agreement, Comparison
from swizzle_sim.hardware.measurement import Measurement
from swizzle_sim.hardware.results import MEASUREMENTS
from swizzle_sim.hardware.runs import agreements_in
from xcd_model.errors import SwizzleSimError

_OUTPUTS = {
    "bitwise": "equal bit for bit",
    "tolerance": "equal within tolerance",
    "differs": "differ: not counted",
    "failed": "failed",
    "unchecked": "not checked",
}


@dataclass(frozen=True)
class Measured:
    """One result of hardware and its predictions.

    Parameters
    ----------
    kind : str
        ``measured`` or ``replayed``.
    machine : str
    replay : str
        Of the predictions.
    rows : list of dict
        Strings by column, the launch order first.
    sentences, doubts : list of str
    """

    kind: str
    machine: str
    replay: str
    rows: list[dict[str, str]]
    sentences: list[str]
    doubts: list[str]


def measured_in(folder: Path) -> tuple[list[Measured], str]:
    """Agreement of every result stored with a run, and what is wrong with them if they cannot be used."""
    if not any((folder / MEASUREMENTS).glob("*.json")):
        return [], ""
    try:
        return [_measured(one) for one in agreements_in(folder)], ""
    except SwizzleSimError as error:
        return [], str(error)


def _measured(found: Agreement) -> Measured:
    names = {one.candidate: one.name for one in found.measurements}
    return Measured(
        kind=found.kind,
        machine=str(found.result["machine"].get("name", "an unnamed GPU")),
        replay=str(found.manifest["replay"]),
        rows=[_row(one, found.predicted[one.candidate] or {}) for one in found.measurements],
        sentences=[_sentence(one, names) for one in found.comparisons],
        doubts=list(dict.fromkeys(f"{one.name}: {doubt}" for one in found.measurements for doubt in one.doubts)),
    )


def _row(one: Measurement, score: Mapping[str, Any]) -> dict[str, str]:
    return {
        "name": cut(one.name, 120),
        "outputs": _OUTPUTS.get(one.right, one.right),
        "l2": _or_dash(percent, score.get("l2_hit_rate")),
        "l2_measured": _or_dash(percent, one.l2_hit_rate),
        "reads": _or_dash(gigabytes, score.get("hbm_read_bytes")),
        "reads_measured": _or_dash(gigabytes, one.read_bytes),
        "time": _or_dash(microseconds, score.get("time_us")),
        "time_measured": _or_dash(microseconds, one.time_cold_us),
    }


def _or_dash(said, value: float | None) -> str:
    return "–" if value is None else said(value)


def _sentence(one: Comparison, names: Mapping[str, str]) -> str:
    over = f"over {len(one.candidates)} of {len(names)} orders."
    if one.nothing_to_rank:
        return f"{one.figure.name}: {one.nothing_to_rank}, {over}"
    rho = "" if one.rank_correlation is None else f"rank correlation {one.rank_correlation:+.2f}, "
    winner = "the same winner" if one.same_winner else "another winner"
    return f"{one.figure.name}: {rho}{winner}, {over}"
