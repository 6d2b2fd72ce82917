"""Recorded runs as text: one JSON file a run, with every reply, the digest of its prompt, and the attempts.

A recording is committed in place of the run's databases, and repeated without a model: the prompts are built anew, and
their digests prove that they are the ones that were answered.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any
from unittest.mock import patch

from swizzle_agent.loop import is_models, repeat_run
from swizzle_agent.transcript import END, INPUTS, STEP, Exchange, Transcript
from swizzle_sim.pricing.scores import Score
from swizzle_sim.search import ranking
from swizzle_sim.search.history import Attempt, History
from xcd_model import gpu
from xcd_model.errors import RunError
from xcd_model.spec.load import load_gpu, tomllib

FORMAT = 1
EVIDENCE = "ranked_pairs.toml"  # beside recordings: measured pairs of their day, by which their orders were ranked
NOTES = (STEP, END, INPUTS)  # kinds that a repetition reads
OF_ATTEMPT = ("number", "name", "source", "proposer", "verdict", "critique", "cost_ms")


def record(folder: Path) -> dict[str, Any]:
    """Recording of a finished run of models, JSON-ready; what stands beside the models' orders is left out."""
    with History(folder) as history, Transcript(folder) as transcript:
        attempts = [one.judged for one in history if one.number == 0 or is_models(one)]
        exchanges = [{k: v for k, v in asdict(one).items() if k != "request"} for one in transcript]
        return {
            "format": FORMAT,
            "about": history.about,
            "exchanges": exchanges,
            "notes": {kind: transcript.notes(kind) for kind in NOTES},
            "attempts": json.loads(json.dumps([_as_dict(one) for one in attempts], default=dict)),
        }


def write_recording(folder: Path, to: Path) -> Path:
    """Write the recording of a run into a folder, by the run's name."""
    to.mkdir(parents=True, exist_ok=True)
    path = to / f"{folder.name}.json"
    path.write_text(json.dumps(record(folder), indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return path


def read_recording(path: Path) -> dict[str, Any]:
    """Recording of a file."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RunError(f"{path}: not a recording that can be read ({error})") from error
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise RunError(f"{path}: not a recording of format {FORMAT}")
    return found


def attempts_of(recording: Mapping[str, Any]) -> list[Attempt]:
    """Launch order and orders of the models."""
    return [
        Attempt(
            **{key: one[key] for key in OF_ATTEMPT},
            score=Score.from_dict(one["score"]) if one["score"] else None,
        )
        for one in recording["attempts"]
    ]


def restore(recording: Mapping[str, Any], folder: Path) -> Path:
    """Run folder of a recording, for ``optimize --replay``."""
    with History.create(folder, recording["about"]) as history, Transcript(folder) as transcript:
        with history.running():
            for attempt in attempts_of(recording):
                history.append(attempt)
        for one in recording["exchanges"]:
            transcript.add(Exchange(**one, request=""))
        for kind, values in recording["notes"].items():
            for number, value in enumerate(values):
                transcript.note(kind, number, value)
    return folder


def repeat_recording(path: Path, folder: Path) -> dict[str, Any]:
    """Repeat a recorded run below a folder, with no model; its recording, equal to the first where nothing changed."""
    recording = read_recording(path)
    recording["about"]["gpu_description"] = _of_its_day(recording["about"], path.parent)
    recorded, table = restore(recording, folder / "recorded"), path.parent / EVIDENCE
    pairs = tomllib.loads(table.read_text(encoding="utf-8")) if table.is_file() else None
    with patch.object(ranking, "_table", lambda: pairs) if pairs else nullcontext():
        return record(repeat_run(recorded, folder / "repeated").folder)


def _of_its_day(about: Mapping[str, Any], folder: Path) -> Any:
    """Description of a recording's GPU, facts in the order of the file of its day: today's, or one beside it.

    Prompts that list facts keep that order, and a recording sorts keys.
    """
    files = sorted(folder.glob(f"{about['gpu']}-*.toml"))
    for described in (one.as_dict() for one in (gpu(about["gpu"]), *map(load_gpu, files))):
        if json.loads(json.dumps(described)) == about["gpu_description"]:
            return described
    return about["gpu_description"]


def _as_dict(one: Attempt) -> dict[str, Any]:
    return {key: getattr(one, key) for key in OF_ATTEMPT} | {"score": one.score and one.score.as_dict()}
