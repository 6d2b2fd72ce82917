"""Recorded runs of models: what `swizzle_benchmarks.evidence.study` wrote. Nothing is asked of a model here."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from swizzle_benchmarks.evidence.recording import attempts_of, read_recording
from swizzle_sim.search.history import Attempt
from swizzle_sim.search.ranking import Ranking
from xcd_model import gpu

FOLDER = Path(__file__).with_name("recorded")  # recordings that are committed; `studies/recorded` holds one's own
PICTURE = "aware, picture"  # context of a run whose questions hold a picture


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """One finished run of models."""

    kernel: str
    problem: Mapping[str, int]
    gpu: str
    context: str
    replay: str
    run: str
    models: tuple[str, ...]
    when: str  # day of the first answer
    today: bool  # whether its GPU is described today as it was then; a repetition has the description of that day
    attempts: tuple[Attempt, ...]  # the baseline and what the models proposed

    @property
    def best(self) -> Attempt:
        """Best of what the models proposed; the baseline where nothing is better."""
        return Ranking().order(self.attempts)[0]

    @property
    def rates(self) -> list[float | None]:
        """L2 hit rate of each proposal, None without a score, as recorded."""
        return [None if a.score is None else a.score.l2_hit_rate for a in self.attempts[1:]]


def recorded_runs(folder: Path) -> list[Recorded]:
    """Recordings in a folder, by name."""
    return [_recorded(path.stem, read_recording(path)) for path in sorted(folder.glob("*.json"))]


def _recorded(name: str, recording: Mapping[str, Any]) -> Recorded:
    about, settings = recording["about"], recording["about"]["settings"]
    return Recorded(
        kernel=about["kernel"],
        problem=about["problem"],
        gpu=about["gpu"],
        context=PICTURE if settings.get("image") else settings["context"],
        replay=about["replay"],
        run=name,
        models=tuple(settings["models"]),
        when=min((one["at"][:10] for one in recording["exchanges"]), default=""),
        today=about["gpu_description"] == json.loads(json.dumps(gpu(about["gpu"]).as_dict())),
        attempts=tuple(attempts_of(recording)),
    )
