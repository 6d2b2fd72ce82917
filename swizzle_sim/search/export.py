"""Attempts of runs as a table for pandas, R or a spreadsheet, and as a study that optuna-dashboard opens."""

from __future__ import annotations

import io
import json
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from swizzle_sim.base.release import install_hint
from swizzle_sim.search.history import Attempt, History
from swizzle_sim.search.ranking import ranking_of
from xcd_model.errors import MissingExtra, RunError

if TYPE_CHECKING:
    import pandas as pd

FORMATS = {".csv": "csv", ".parquet": "parquet", ".db": "study"}
NESTED = (dict, list, tuple)
SQLITE = b"SQLite format 3\0"
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


def write_study(path: Path, history: History) -> int:
    """Add a run to an SQLite file as an Optuna study, called after the run's folder; the number of trials.

    A trial is an attempt: its parameters, the objective's figure, and name, text and verdict among its attributes.
    Attempts without a score are failed trials, but for those that the bound ruled out, which are pruned.
    """
    import optuna

    _check_storage(path)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    about, attempts = history.about, list(history)
    objectives = ranking_of(about, history.folder).objectives
    spans = _spans(attempts)
    try:
        study = optuna.create_study(
            study_name=history.folder.resolve().name,
            storage=f"sqlite:///{path}",
            directions=["maximize" if one.largest else "minimize" for one in objectives],
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that names of figures are experimental
            study.set_metric_names([f"{one.name}{f' [{one.unit}]' if one.unit else ''}" for one in objectives])
        for key in SETTINGS:
            study.set_user_attr(key, about.get(key))
        study.set_user_attr("problem", about["problem"])
        study.add_trials([_trial(optuna, one, objectives, spans) for one in attempts])
    except optuna.exceptions.DuplicatedStudyError:
        raise RunError(f"{path} holds a study of {history.folder.name} already: name another file") from None
    return len(attempts)


def _check_storage(path: Path) -> None:
    """Refuse a place where there can be no SQLite file, and a file that is none."""
    try:
        with open(path, "ab+") as file:
            file.seek(0)
            start = file.read(len(SQLITE))
    except OSError as error:
        raise RunError(f"{path}: cannot be written ({error.strerror})") from None
    if start not in (b"", SQLITE):
        raise RunError(f"{path}: a file that is no SQLite database is in the way")


def _spans(attempts: Iterable[Attempt]) -> dict[str, tuple[int, int]]:
    """Least and largest value of each parameter in the run."""
    spans: dict[str, tuple[int, int]] = {}
    for one in attempts:
        for name, value in one.verdict.get("parameters", {}).items():
            low, high = spans.get(name, (value, value))
            spans[name] = min(low, value), max(high, value)
    return spans


def _trial(optuna: Any, one: Attempt, objectives: Any, spans: Mapping[str, tuple[int, int]]) -> Any:
    """Trial of an attempt."""
    states = optuna.trial.TrialState
    told: dict[str, Any] = {"name": one.name, "proposer": one.proposer, "critique": one.critique, "source": one.source}
    told |= {"domain": one.verdict.get("domain"), "template": one.verdict.get("template")}
    found: dict[str, Any] = {"params": one.verdict.get("parameters", {})}
    found["distributions"] = {name: optuna.distributions.IntDistribution(*spans[name]) for name in found["params"]}
    if one.score is None:
        ruled_out = one.verdict.get("stage") in ("bound", "sampled", "screen") and len(objectives) == 1
        state = states.PRUNED if ruled_out else states.FAIL
        return optuna.trial.create_trial(state=state, user_attrs=told, **found)
    told |= {"l2_hit_rate": one.score.l2_hit_rate, "speedup": one.score.speedup, "hbm_bytes": one.score.hbm_bytes}
    values = [each.of(one.score) for each in objectives]
    return optuna.trial.create_trial(state=states.COMPLETE, values=values, user_attrs=told, **found)
