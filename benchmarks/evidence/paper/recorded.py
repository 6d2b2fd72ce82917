"""Recorded runs of models: what `swizzle-sim lab study` left in its folder. Nothing is asked of a model here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from swizzle_agent.loop import LLM
from swizzle_sim.search.history import FILE, Attempt, History
from swizzle_sim.search.ranking import Ranking
from xcd_model.errors import RunError

FOLDER = Path("studies")


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
    """Finished runs of models directly below a folder, by name."""
    found = []
    for path in sorted(folder.glob(f"*/{FILE}")):
        with History(path.parent) as history:
            about, state = history.about, history.state
            if state != "finished" or "settings" not in about:
                continue
            attempts = tuple(a for a in history if a.number == 0 or a.proposer.startswith(LLM))
        if not attempts:
            raise RunError(f"{path}: damaged (no baseline)")
        found.append(_recorded(path.parent.name, about, attempts))
    return found


def _recorded(name: str, about: Mapping[str, Any], attempts: tuple[Attempt, ...]) -> Recorded:
    return Recorded(
        kernel=about["kernel"],
        problem=about["problem"],
        gpu=about["gpu"],
        context=about["settings"]["context"],
        replay=about["replay"],
        run=name,
        models=tuple(about["settings"]["models"]),
        attempts=attempts,
    )
