"""Reader of rocpd, the SQLite file that rocprofv3 writes since ROCm 7 unless told otherwise.

Source: the view ``counters_collection`` of rocprofiler-sdk's ``data_views.sql``, a row for each dispatch and counter.
"""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

from swizzle_sim.hardware.node.dispatches import Dispatch
from xcd_model.errors import HardwareError

NEEDED = ("dispatch_id", "kernel_name", "counter_name", "value")
_KEPT = (
    "grid_size",
    "workgroup_size",
    "lds_block_size",
    "scratch_size",
    "vgpr_count",
    "accum_vgpr_count",
    "sgpr_count",
)


def read_rocpd(path: Path) -> tuple[list[Dispatch], list[str]]:
    """Launches with their counters.

    Raises
    ------
    HardwareError
        With code ``format`` if the file is damaged or has no such view.
    """
    try:
        with contextlib.closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as db:
            db.row_factory = sqlite3.Row
            rows = db.execute("SELECT * FROM counters_collection").fetchall()
    except sqlite3.Error as error:
        raise HardwareError(f"{path}: no readable rocpd file with counters ({error})", code="format") from None
    found: dict[int, Dispatch] = {}
    for row in rows:
        names = row.keys()
        missing = [name for name in NEEDED if name not in names]
        if missing:
            raise HardwareError(f"{path}: counters_collection has no column {', '.join(missing)}", code="format")
        one = found.setdefault(row["dispatch_id"], Dispatch(row["dispatch_id"], row["kernel_name"]))
        one.counters[row["counter_name"]] = one.counters.get(row["counter_name"], 0.0) + float(row["value"])
        if "start" in names and "end" in names:
            one.duration_ns = float(row["end"]) - float(row["start"])
        one.about = {name: str(row[name]) for name in _KEPT if name in names and row[name] is not None}
    return list(found.values()), []
