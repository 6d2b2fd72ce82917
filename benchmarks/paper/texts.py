"""Scores of given texts on one kernel, by the timed replay: what recorded models proposed, or the paper's own order."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.paper.arms import REPLAY, counted_kernel, kept
from swizzle_sim.scoring import Scorer
from swizzle_sim.swizzle import Swizzle
from xcd_model import gpu


def score_texts(about: Mapping[str, Any], folder: Path, say: Callable[[str], None]) -> dict[str, Any]:
    """Score texts; ``about`` has ``kernel``, ``problem``, ``gpu`` and ``texts``, by label.

    Returns
    -------
    found : dict
        ``launched`` and ``texts``, by label: ``score`` (None for what is no bijection of the grid), ``domain``.
    """
    scorer = Scorer(counted_kernel(about), gpu(about["gpu"]), replay=REPLAY)
    found = {}
    for label, text in about["texts"].items():
        say(label)
        swizzle = Swizzle.parse(text, name=label)
        verdict = scorer.verify(swizzle)
        score = kept(scorer.score(swizzle)) if verdict.bijective else None
        found[label] = {"score": score, "domain": verdict.domain}
    return {"replay": REPLAY, "launched": kept(scorer.baseline), "texts": found}
