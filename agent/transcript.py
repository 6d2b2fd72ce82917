"""`Transcript`: every prompt and reply of a run, on disk before the reply is used.

One SQLite file next to the run's history. A reply is looked up by its position (iteration, purpose, candidate, ask)
and counts only if the prompt is the same, to the byte.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple

from swizzle_sim.search.history import RunFile, guarded, storable
from xcd_model.errors import RunError

from .providers import strike_keys

FILE = "transcript.sqlite"
FORMAT = 1
STEP, END, INPUTS = "step", "end", "inputs"  # kinds of notes: an iteration, why the run ended, what it read
PROPOSE, MEMORY = "propose", "memory-analysis"  # purposes of an exchange


class Position(NamedTuple):
    """Where in a run a request belongs: ``ask`` counts the tries of the same question."""

    iteration: int
    purpose: str
    candidate: int
    ask: int


@dataclass(frozen=True)
class Exchange:
    """One prompt and what came back, at its `Position`.

    ``model`` is as DSPy names it, ``version`` that of swizzle-sim and DSPy. ``request`` is JSON of messages and
    options, keys struck out, images as data URIs; ``digest`` is of it. ``finish`` says why the model stopped, ``code``
    and ``error`` are of a `Failure` where no answer came; ``dollars`` is None for a model without a price, ``at`` the
    UTC time of the answer.
    """

    iteration: int
    purpose: str
    candidate: int
    ask: int
    model: str
    seed: int
    version: str
    request: str
    digest: str
    reply: str | None = None
    finish: str | None = None
    code: str | None = None
    error: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    dollars: float | None = 0.0
    latency_ms: float = 0.0
    at: str = ""

    @property
    def position(self) -> Position:
        """Where in the run it belongs."""
        return Position(self.iteration, self.purpose, self.candidate, self.ask)


def _row_of(exchange: Exchange) -> list[Any]:
    return [strike_keys(storable(cell)) if isinstance(cell, str) else cell for cell in astuple(exchange)]


_COLUMNS = [field.name for field in fields(Exchange)]
_AT = "iteration = ? AND purpose = ? AND candidate = ? AND ask = ?"
_TABLES = f"""
CREATE TABLE format (format INTEGER NOT NULL);
INSERT INTO format VALUES ({FORMAT});
CREATE TABLE exchange ({", ".join(_COLUMNS)}, PRIMARY KEY (iteration, purpose, candidate, ask));
CREATE TABLE note (kind TEXT, number INTEGER, text TEXT NOT NULL, PRIMARY KEY (kind, number));
"""

_PIXELS = re.compile(r"(?<=data:image/png;base64,)[A-Za-z0-9+/=]*")


def request_text(request: Mapping[str, Any]) -> str:
    """Canonical JSON of a request, keys struck out."""
    return strike_keys(json.dumps(request, sort_keys=True, ensure_ascii=True))


def digest_of(text: str) -> str:
    """Digest of a request text without the bytes of pictures, which another version of Matplotlib draws otherwise."""
    return hashlib.sha256(_PIXELS.sub("", text).encode()).hexdigest()[:32]


class Transcript(RunFile):
    """The exchanges of one run, in a file of its folder, which is made where there is none; in memory without a folder.

    Raises RunError for a file that is damaged or of another format.
    """

    def __init__(self, folder: Path | None):
        path = Path(":memory:") if folder is None else Path(folder) / FILE
        with guarded(path):
            super().__init__(path)
            with self._db:
                self._db.execute("BEGIN IMMEDIATE")  # a kill between two of the tables leaves neither
                if not self._db.execute("SELECT 1 FROM sqlite_master WHERE name = 'format'").fetchone():
                    for statement in filter(str.strip, _TABLES.split(";")):
                        self._db.execute(statement)
            found = self._db.execute("SELECT format FROM format").fetchone()
        if found is None or found[0] != FORMAT:
            raise RunError(f"{path}: format {found and found[0]}, this version reads format {FORMAT}")

    def add(self, exchange: Exchange) -> None:
        """Store an exchange."""
        self._write(f"INSERT INTO exchange VALUES ({', '.join('?' * len(_COLUMNS))})", _row_of(exchange))

    def complete(self, exchange: Exchange) -> None:
        """Store the answer to a question that `add` stored."""
        marks = ", ".join(f"{name} = ?" for name in _COLUMNS)
        self._write(f"UPDATE exchange SET {marks} WHERE {_AT}", [*_row_of(exchange), *exchange.position])

    def withdraw(self, position: Position) -> None:
        """Drop a question for which nobody waits any more."""
        self._write(f"DELETE FROM exchange WHERE {_AT}", position)

    def find(self, position: Position) -> Exchange | None:
        """Exchange at a position, or None."""
        return next((Exchange(*row) for row in self._read(f"SELECT * FROM exchange WHERE {_AT}", *position)), None)

    def __iter__(self) -> Iterator[Exchange]:
        """Exchanges in the order made."""
        with guarded(self.path):
            return iter([Exchange(*row) for row in self._read("SELECT * FROM exchange ORDER BY rowid")])

    def note(self, kind: str, number: int, value: Any) -> None:
        """Store a JSON value under a kind and a number; the first one stays."""
        text = strike_keys(json.dumps(value, sort_keys=True))
        self._write("INSERT OR IGNORE INTO note VALUES (?, ?, ?)", (kind, number, text))

    def noted(self, kind: str, number: int = 0) -> Any:
        """Value stored under a kind and a number, or None."""
        rows = self._read("SELECT text FROM note WHERE kind = ? AND number = ?", kind, number)
        return json.loads(rows[0][0]) if rows else None

    def notes(self, kind: str) -> list[Any]:
        """All values of a kind, by number."""
        rows = self._read("SELECT text FROM note WHERE kind = ? ORDER BY number", kind)
        return [json.loads(text) for (text,) in rows]

    def take_back(self, iteration: int, kind: str, codes: Collection[str]) -> None:
        """Drop requests that failed with one of ``codes``, and notes of a kind, from an iteration on: a second try."""
        marks = ", ".join("?" * len(codes))
        with guarded(self.path), self._db:
            where = f"iteration >= ? AND code IN ({marks})"
            self._db.execute(f"DELETE FROM exchange WHERE {where}", (iteration, *sorted(codes)))
            self._db.execute("DELETE FROM note WHERE kind = ? AND number >= ?", (kind, iteration))

    def forget(self, kind: str) -> None:
        """Drop the notes of a kind."""
        self._write("DELETE FROM note WHERE kind = ?", (kind,))
