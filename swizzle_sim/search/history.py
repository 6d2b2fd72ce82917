"""`History`: every attempt of a run, in SQLite, durable before it is used; and runs as a table for pandas or R.

A run folder holds ``history.sqlite`` and what is made from it (report, pictures, best swizzle). One row of table
``run`` has the settings and the state; table ``attempt`` has a row for each candidate.
"""

from __future__ import annotations

import contextlib
import io
import json
import shlex
import shutil
import sqlite3
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from swizzle_sim.base.release import install_hint
from swizzle_sim.pricing.scores import Score
from xcd_model.errors import MissingExtra, RunError

if TYPE_CHECKING:
    import pandas as pd

    from swizzle_sim.language import Swizzle

FILE = "history.sqlite"
LOCK = ".writer.lock"  # held by the command that writes the run
FORMAT = 1  # raise when the tables change
BEFORE_PRICE = "before_price"  # key of a verdict: score and critique of a finalist before it was compiled
STATES = ("running", "interrupted", "finished")  # as stored
NESTED = (dict, list, tuple)
SETTINGS = ("kernel", "gpu", "replay", "seed", "version")
F = TypeVar("F", bound="RunFile")

_RUN = "CREATE TABLE run (format INTEGER NOT NULL, state TEXT NOT NULL, about TEXT NOT NULL)"
_ATTEMPT = """
CREATE TABLE attempt (
    number INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    source TEXT NOT NULL,
    proposer TEXT NOT NULL,
    verdict TEXT NOT NULL,
    score TEXT,
    critique TEXT NOT NULL,
    cost_ms REAL NOT NULL
)
"""


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """One candidate: its origin, verdict, score and cost.

    ``number`` is its position in the run, 0 the baseline's; ``name`` a family specification, or what the proposer calls
    it; ``source`` a text in the closed language; ``verdict`` is as `swizzle_sim.language.Verdict.as_dict` gives it.
    There is no ``score`` where it is not a bijection, or the same permutation as an earlier attempt: ``critique`` says
    why. ``cost_ms`` is the time that it took; the launch order's, in a run of families, is without its replay.
    """

    number: int
    name: str
    source: str
    proposer: str
    verdict: Mapping[str, Any]
    score: Score | None
    critique: str = ""
    cost_ms: float = 0.0

    def priced(self, score: Score | None, critique: str) -> Attempt:
        """Attempt with the score as compiled; `judged` gives back what it was."""
        before = {"score": self.score.as_dict() if self.score else None, "critique": self.critique}
        return replace(self, score=score, critique=critique, verdict={**self.verdict, BEFORE_PRICE: before})

    @property
    def swizzle(self) -> Swizzle:
        """The text, parsed; raises `LanguageError` where it is outside the language."""
        from swizzle_sim.language import Swizzle

        return Swizzle.parse(self.source, name=self.name)

    @property
    def proof(self) -> dict[str, Any]:
        """Verdict without what the judge adds to it: the rung that decided, and its code."""
        return {key: value for key, value in self.verdict.items() if key not in ("code", "stage")}

    @property
    def judged(self) -> Attempt:
        """Attempt before its price: what a run that goes on, or prompts a model, has to see again."""
        if (before := self.verdict.get(BEFORE_PRICE)) is None:
            return self
        verdict = {key: value for key, value in self.verdict.items() if key != BEFORE_PRICE}
        score = Score.from_dict(before["score"]) if before["score"] else None
        return replace(self, score=score, critique=before["critique"], verdict=verdict)


class RunFile:
    """One SQLite file of a run, which is named in errors; what is written is on disk when a call returns."""

    def __init__(self, path: Path | str):
        self.path = Path(path)
        self._db = sqlite3.connect(path, timeout=10, check_same_thread=False)
        self._db.execute("PRAGMA synchronous=FULL")

    def __enter__(self: F) -> F:
        return self

    def __exit__(self, *exc_info) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def _read(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        with guarded(self.path):
            return self._db.execute(statement, values).fetchall()

    def _write(self, statement: str, *rows: Sequence[Any]) -> None:
        with guarded(self.path), self._db:
            self._db.executemany(statement, rows)


class History(RunFile):
    """The store of one run, in a folder that `create` made.

    Raises RunError where there is no run, or its store is damaged or of another format.
    """

    def __init__(self, folder: Path):
        self.folder = Path(folder)
        path = self.folder / FILE
        if not path.is_file():
            raise RunError(f"{self.folder}: no run here (no {FILE}); `swizzle-sim runs` lists the runs there are")
        try:
            super().__init__(path)
            row = self._db.execute("SELECT format FROM run").fetchone()
        except (sqlite3.Error, ValueError) as error:
            raise RunError(f"{path}: not a readable history ({error}){_how_to_save(path)}") from error
        if row is None or row[0] != FORMAT:
            raise RunError(f"{path}: format {row and row[0]}, this version reads format {FORMAT}")

    @classmethod
    def create(cls, folder: Path, about: Mapping[str, Any]) -> History:
        """Start a run in a new folder; one that exists is refused, since a run is never overwritten."""
        folder = Path(folder)
        in_the_way = f"{folder} exists, and a run is never overwritten: name another folder, or --resume it"
        if folder.exists() or folder.is_symlink():
            raise RunError(in_the_way)
        unfinished: Path | None = None
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            unfinished = folder.with_name(f".{folder.name}.{uuid.uuid4().hex[:8]}")
            unfinished.mkdir()
            _write_new(unfinished / FILE, about)
            unfinished.rename(folder)  # a kill before this leaves no run, one after it a whole one
        except OSError as error:
            if folder.is_dir():  # another command was faster
                raise RunError(in_the_way) from None
            raise RunError(f"{folder}: cannot make the run folder ({error.strerror})") from None
        except sqlite3.Error as error:
            raise RunError(f"{folder}: cannot make the run folder ({error})") from None
        finally:
            if unfinished is not None:
                shutil.rmtree(unfinished, ignore_errors=True)
        return cls(folder)

    @property
    def about(self) -> dict[str, Any]:
        """Settings of the run: kernel, gpu, problem, replay, seed, version."""
        with guarded(self.path):
            about = json.loads(self._db.execute("SELECT about FROM run").fetchone()[0])
            return {"replacement": "lru", **about, "kernel": about["kernel"]}  # runs before it was noted had no other

    @property
    def state(self) -> str:
        """One of `STATES`, or ``stopped`` where the command that wrote the run is dead."""
        ((state,),) = self._read("SELECT state FROM run")
        return "stopped" if state == "running" and not self._written() else state

    def _written(self) -> bool:
        """Whether a command holds the lock of `alone`."""
        try:
            with contextlib.closing(
                sqlite3.connect(f"{(self.folder / LOCK).absolute().as_uri()}?mode=ro", uri=True, timeout=0)
            ) as lock:
                lock.execute("SELECT * FROM sqlite_master")
        except sqlite3.Error as error:
            return "locked" in str(error)
        return False

    def set_state(self, state: str) -> None:
        """Store the state: one of `STATES`."""
        self._write("UPDATE run SET state = ?", (state,))

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """State of the run: ``running`` inside, then ``finished``, or ``interrupted`` by an error.

        Refused while another command is inside, in this process or another; its state stays.
        """
        with self.alone():
            try:
                self.set_state("running")
                yield
            except BaseException:
                with contextlib.suppress(RunError):  # a full disk is said once
                    self.set_state("interrupted")
                raise
            self.set_state("finished")

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the lock of an empty SQLite file, which the system lets go of when a process dies."""
        lock = sqlite3.connect(self.folder / LOCK, timeout=0.2, isolation_level=None, check_same_thread=False)
        try:
            lock.execute("BEGIN EXCLUSIVE")
        except sqlite3.Error as error:
            lock.close()
            if "locked" in str(error):
                raise RunError(f"{self.folder}: another command is writing this run: wait until it ends") from None
            raise RunError(f"{self.folder}: cannot be written ({error})") from None
        try:
            yield
        finally:
            lock.close()

    def append(self, *attempts: Attempt) -> None:
        """Store attempts, all or none of them."""
        self._write("INSERT INTO attempt VALUES (?,?,?,?,?,?,?,?)", *map(_row_of, attempts))

    def replace(self, attempt: Attempt) -> None:
        """Store another verdict, score and critique of an attempt that is there."""
        number, *_, verdict, score, critique, _ = _row_of(attempt)
        row = (verdict, score, critique, number)
        self._write("UPDATE attempt SET verdict = ?, score = ?, critique = ? WHERE number = ?", row)

    def __iter__(self) -> Iterator[Attempt]:
        """Attempts in the order made."""
        with guarded(self.path):
            attempts = [_attempt_of(row) for row in self._db.execute("SELECT * FROM attempt ORDER BY number")]
        for number, attempt in enumerate(attempts):
            if attempt.number != number:  # a run goes on after its first attempts, not around a hole
                rest = shlex.quote(f"DELETE FROM attempt WHERE number > {number}")
                how = (
                    f"sqlite3 {shlex.quote(str(self.path))} {rest} keeps those before it, and --resume makes the others"
                )
                raise RunError(f"{self.path}: attempt {number} is missing: {how}")
        return iter(attempts)

    def frame(self) -> pd.DataFrame:
        """Attempts as a table: one row each, score fields as columns, NaN where there is no score."""
        import pandas as pd

        rows = [
            {
                "number": a.number,
                "name": a.name,
                "proposer": a.proposer,
                "bijective": a.verdict.get("bijective", False),
                "domain": a.verdict.get("domain"),
                "critique": a.critique,
                "cost_ms": a.cost_ms,
                **({} if a.score is None else a.score.as_dict()),
            }
            for a in self
        ]
        return pd.DataFrame(rows)

    def __len__(self) -> int:
        return self._read("SELECT COUNT(*) FROM attempt")[0][0]


def _write_new(path: Path, about: Mapping[str, Any]) -> None:
    """Write the store of a new run."""
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA synchronous=FULL")
        with db:
            db.execute("BEGIN")
            db.execute(_RUN)
            db.execute(_ATTEMPT)
            db.execute("INSERT INTO run VALUES (?, 'running', ?)", (FORMAT, json.dumps(dict(about))))


@contextlib.contextmanager
def guarded(path: Path) -> Iterator[None]:
    """Name the file of a run in errors of SQLite or of its content."""
    try:
        yield
    except sqlite3.IntegrityError as error:
        raise RunError(f"{path.parent}: another command writes this run at the same time ({error})") from error
    except (sqlite3.Error, KeyError, TypeError, ValueError) as error:
        raise RunError(f"{path}: damaged, or not to be written ({error}){_how_to_save(path)}") from error


def _how_to_save(path: Path) -> str:
    copied = f"sqlite3 {shlex.quote(str(path))} .recover | sqlite3 NEW"
    return f"; what can be read of a damaged file: {copied} (builds of sqlite.org have .recover)"


def storable(text: str) -> str:
    """Text with the characters that UTF-8 cannot encode (lone surrogates, from a model) as escapes."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _row_of(attempt: Attempt) -> tuple:
    score = None if attempt.score is None else json.dumps(attempt.score.as_dict())
    texts = [storable(text) for text in (attempt.name, attempt.source, attempt.proposer)]
    row = (attempt.number, *texts, json.dumps(dict(attempt.verdict)), score, storable(attempt.critique))
    return (*row, attempt.cost_ms)


def as_stored(attempt: Attempt) -> Attempt:
    """Attempt as it is read back."""
    return _attempt_of(_row_of(attempt))


def _attempt_of(row: tuple) -> Attempt:
    values: dict[str, Any] = dict(zip((column.name for column in fields(Attempt)), row, strict=True))
    if not all(isinstance(values[text], str) for text in ("name", "source", "proposer", "critique")):
        raise ValueError(f"a text of attempt {values['number']} is none")
    score = Score.from_dict(json.loads(values["score"])) if values["score"] else None
    return Attempt(**values | {"verdict": json.loads(values["verdict"]), "score": score})


def runs_in(folder: str | Path) -> Iterator[Path]:
    """``folder`` itself where it is a run, and run folders directly below it, by name."""
    where = Path(folder)
    if where.is_dir():
        yield from sorted(path.parent for pattern in (FILE, f"*/{FILE}") for path in where.glob(pattern))


def attempts_table(folders: Iterable[Path]) -> pd.DataFrame:
    """Every attempt of runs, one row each."""
    import pandas as pd  # half a second

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
