"""Attempts of runs as a table for pandas, R or a spreadsheet."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from swizzle_sim.base.release import install_hint
from swizzle_sim.search.history import History
from xcd_model.errors import MissingExtra

if TYPE_CHECKING:
    import pandas as pd

NESTED = (dict, list, tuple)
SETTINGS = ("kernel", "gpu", "replay", "seed", "version")


def attempts_table(folders: Iterable[Path]) -> pd.DataFrame:
    """Every attempt of runs, one row each."""
    import pandas as pd  # noqa: PLC0415 - half a second

    parts = []
    for folder in folders:
        with History(folder) as history:
            part, about = history.frame(), history.about
            sources = [one.source for one in history]
        part.insert(0, "run", str(folder))
        for place, key in enumerate(SETTINGS, 1):
            part.insert(place, key, about.get(key))
        part.insert(1 + len(SETTINGS), "problem", json.dumps(about["problem"]))
        part["source"] = sources
        parts.append(part)
    table = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()
    for column in table.columns:
        cells = list(table[column])
        if any(isinstance(one, NESTED) for one in cells):
            table[column] = [json.dumps(one) if isinstance(one, NESTED) else None for one in cells]
    return table


def csv_of(table: pd.DataFrame) -> bytes:
    """Table as CSV, UTF-8."""
    return table.to_csv(index=False, lineterminator="\n").encode()


def parquet_of(table: pd.DataFrame) -> bytes:
    """Table as Parquet."""
    file = io.BytesIO()
    try:
        table.to_parquet(file, index=False, engine="pyarrow")
    except ImportError:
        raise MissingExtra(f"Parquet needs pyarrow, which is not installed: {install_hint('parquet')}") from None
    return file.getvalue()


FORMATS: Mapping[str, Callable[[pd.DataFrame], bytes]] = {".csv": csv_of, ".parquet": parquet_of}
