"""`repair`: what can still be read of a damaged run, row by row, into files that every command reads again.

A row is found by its number, so that a damaged page costs its own rows only. The damaged files stay, renamed.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from swizzle_sim.search.history import FILE, FORMAT, History, guarded, is_whole
from xcd_model.errors import RunError

_GAP = 2000  # numbers tried after the last row that was read


@dataclass(frozen=True)
class Repaired:
    """What became of one file of a run."""

    file: str
    rows: dict[str, int]  # rows read, by table
    # numbers of the rows that are missing or cannot be read, by table; of attempts also those after the first such row,
    # which the run makes anew when it is resumed
    lost: dict[str, tuple[int, ...]]


def repair(folder: Path) -> list[Repaired]:
    """Repair the files of a run in place; none if nothing is damaged."""
    if not (folder / FILE).is_file():
        raise RunError(f"{folder}: no run here (no {FILE})")
    done = [_repair_file(path) for path in sorted(folder.glob("*.sqlite")) if _is_damaged(path)]
    with History(folder) as history, history.alone():
        _read_all(history)
        if done:
            history.set_state("interrupted")
    return done


def _is_damaged(path: Path) -> bool:
    try:
        with contextlib.closing(sqlite3.connect(path, timeout=10)) as db:
            if db.execute("PRAGMA integrity_check").fetchone()[0] != "ok":
                return True
            tables = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    except (sqlite3.Error, ValueError):
        return True
    if path.name != FILE:
        return False
    try:
        with History(path.parent) as history:
            _read_all(history)
    except RunError:
        return "attempt" in tables
    return False


def _read_all(history: History) -> None:
    """Read everything of a run once; raises `RunError` if something is damaged."""
    _ = history.about, history.state
    for number, attempt in enumerate(history):
        if attempt.number != number:
            raise RunError(f"{history.folder / FILE}: attempt {number} is missing")


def _repair_file(path: Path) -> Repaired:
    """Copy the rows that can be read into a new file, which takes the place of the old one."""
    fresh = path.with_name(f".{path.name}.repaired")
    fresh.unlink(missing_ok=True)
    try:
        with tempfile.TemporaryDirectory() as aside:
            copy = Path(aside) / path.name
            shutil.copyfile(path, copy)
            journal = path.with_name(path.name + "-journal")
            if journal.exists():
                shutil.copyfile(journal, copy.with_name(journal.name))
            with contextlib.closing(sqlite3.connect(copy)) as old, contextlib.closing(sqlite3.connect(fresh)) as new:
                found = _copy(path, old, new)
        kept = path.with_name(f"{path.name}.damaged")
        os.replace(path, kept)
        os.replace(fresh, path)
        journal.unlink(missing_ok=True)
    except OSError as error:
        raise RunError(f"{path}: cannot be repaired ({error.strerror or error})") from None
    finally:
        fresh.unlink(missing_ok=True)
    return found


def _copy(path: Path, old: sqlite3.Connection, new: sqlite3.Connection) -> Repaired:
    old.execute("PRAGMA writable_schema=ON")  # or SQLite refuses a file that is shorter than it says
    try:
        schema = old.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table' ORDER BY rowid").fetchall()
    except (sqlite3.Error, ValueError) as error:
        raise RunError(f"{path}: nothing can be read ({error}): start the run anew in another folder") from None
    rows: dict[str, int] = {}
    lost: dict[str, tuple[int, ...]] = {}
    with guarded(path), new:  # sqlite3 commits at the end
        for name, sql in schema:
            new.execute(sql)
            found, missing = _rows(old, name)
            if name == "attempt" and missing:  # a run goes on after its first attempts, not around a hole
                missing = [*missing, *(number for number in found if number > missing[0])]
                found = {number: row for number, row in found.items() if number < missing[0]}
            for number, row in sorted(found.items()):
                marks = ", ".join("?" * len(row))
                try:
                    new.execute(f'INSERT INTO "{name}" VALUES ({marks})', row)
                except sqlite3.IntegrityError:
                    missing.append(number)
            rows[name], lost[name] = len(found), tuple(sorted(set(missing)))
        _settings(path, new, rows)
    return Repaired(path.name, rows, {name: numbers for name, numbers in lost.items() if numbers})


def _settings(path: Path, new: sqlite3.Connection, rows: dict[str, int]) -> None:
    """Take the settings of a run from their second copy where the first cannot be read, and the other way round."""
    if "run" not in rows or (rows["run"] and rows.get("settings", 1)):
        return
    if rows["run"]:
        new.execute("INSERT INTO settings SELECT about FROM run")
    elif rows.get("settings"):
        new.execute("INSERT INTO run SELECT ?, 'interrupted', about FROM settings", (FORMAT,))
    else:
        raise RunError(f"{path}: its settings cannot be read: start the run anew in another folder")


def _rows(db: sqlite3.Connection, table: str) -> tuple[dict[int, tuple[Any, ...]], list[int]]:
    """Rows of a table by number, and the numbers in between that cannot be read."""
    found: dict[int, tuple[Any, ...]] = {}
    number = first = 0 if table == "attempt" else 1
    last = first + _GAP
    while number <= last:
        if (row := _row(db, table, number)) is not None:
            found[number], last = row, number + _GAP
        number += 1
    top = max([*found, min(_highest(db, table), last), first - 1])
    return found, [number for number in range(first, top + 1) if number not in found]


def _row(db: sqlite3.Connection, table: str, number: int) -> tuple[Any, ...] | None:
    try:
        row = db.execute(f'SELECT * FROM "{table}" NOT INDEXED WHERE rowid = ?', (number,)).fetchone()
    except (sqlite3.Error, ValueError):
        return None
    return row if row is not None and is_whole(table, row) else None


def _highest(db: sqlite3.Connection, table: str) -> int:
    try:
        return int(db.execute(f'SELECT max(rowid) FROM "{table}"').fetchone()[0] or 0)
    except (sqlite3.Error, TypeError, ValueError):
        return 0
