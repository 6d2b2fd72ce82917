"""Reader of rocprofv3's ``agent_info.csv``: which devices there are, with how many XCDs and CUs."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Agent:
    """One GPU as the runtime lists it.

    ``xcds`` and ``compute_units`` are None where the file does not have them; caches are in no version of it.
    """

    name: str
    product: str
    xcds: int | None
    compute_units: int | None
    wave_size: int | None
    clock_mhz: int | None


def read_agents(path: Path) -> tuple[list[Agent], list[str]]:
    """GPUs of the file; CPUs are left out."""
    found, notes = [], []
    for raw in csv.DictReader(path.read_text(encoding="utf-8-sig", errors="replace").splitlines()):
        row = {name.lower(): cell for name, cell in raw.items() if name is not None and cell is not None}
        if "GPU" not in row.get("agent_type", ""):
            continue
        if "num_xcc" not in row:
            notes.append(f"{path.name}: no column Num_Xcc")
        found.append(
            Agent(
                name=row.get("name", ""),
                product=row.get("product_name", ""),
                xcds=_int(row.get("num_xcc")),
                compute_units=_int(row.get("cu_count")),
                wave_size=_int(row.get("wave_front_size")),
                clock_mhz=_int(row.get("max_engine_clk_fcompute")),
            )
        )
    return found, notes


def _int(text: str | None) -> int | None:
    return int(text) if text and text.isdigit() else None
