"""`PointStore`: what a sweep has found so far, each point once, durable before it counts."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

from xcd_model.errors import RunError

FILE = "sweep.sqlite"


def key_of(point: Mapping[str, Any]) -> str:
    """Name of a point: the same in every process."""
    return blake2b(json.dumps(point, sort_keys=True).encode(), digest_size=12).hexdigest()


class PointStore:
    """Rows of a sweep by point, in one SQLite file; in memory without a folder.

    Parameters
    ----------
    folder : Path or None
    resume : bool
        Go on with the store that is there.

    Raises
    ------
    RunError
        If there is a store and ``resume`` is off, there is none and it is on, or it cannot be read.
    """

    def __init__(self, folder: Path | None, *, resume: bool = False):
        self.folder = folder
        path = None if folder is None else Path(folder) / FILE
        if path is not None and path.exists() != resume:
            what = "no sweep here" if resume else "a sweep is never overwritten: name another folder, or --resume it"
            raise RunError(f"{folder}: {what}")
        try:
            if path is not None:
                path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(path or ":memory:")
            with self._db:
                self._db.execute("CREATE TABLE IF NOT EXISTS point (key TEXT PRIMARY KEY, point TEXT, row TEXT)")
        except (OSError, sqlite3.Error) as error:
            raise RunError(f"{folder}: not a sweep that can be read or written ({error})") from error

    def __enter__(self) -> PointStore:
        return self

    def __exit__(self, *exc_info) -> None:
        self._db.close()

    def add(self, point: Mapping[str, Any], row: Mapping[str, Any]) -> bool:
        """Store a result; False if the point had one, which stays: a point that was computed twice counts once."""
        with self._db:
            values = (key_of(point), json.dumps(point), json.dumps(row))
            return self._db.execute("INSERT OR IGNORE INTO point VALUES (?, ?, ?)", values).rowcount == 1

    def find(self, point: Mapping[str, Any]) -> dict[str, Any] | None:
        """Result of a point, or None."""
        row = self._db.execute("SELECT row FROM point WHERE key = ?", (key_of(point),)).fetchone()
        return json.loads(row[0]) if row else None

    def __len__(self) -> int:
        return self._db.execute("SELECT COUNT(*) FROM point").fetchone()[0]
