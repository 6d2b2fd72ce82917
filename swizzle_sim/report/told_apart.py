"""Which of the best swizzles other plausible constants of the model would rank otherwise, as a run stored it."""

from __future__ import annotations

import json
from pathlib import Path

FILE = "uncertainty.json"  # that `swizzle-sim optimize` leaves in the run folder


def told_apart(folder: Path) -> list[str]:
    """Sentences on the best and those near it; none where the run stored nothing that can be read.

    Parameters
    ----------
    folder : Path
        Of the run.
    """
    try:
        found = json.loads((folder / FILE).read_text(encoding="utf-8"))
        return _sentences(found)
    except (OSError, ValueError, KeyError, TypeError, IndexError):
        return []


def _sentences(found: dict) -> list[str]:
    pairs, constants = found["pairs"], ", ".join(found["constants"])
    drawn = f"over {found['draws']} draws of {constants}" if constants else "as it hangs on no uncertain constant"
    best = pairs[0]["better"]
    near = [f"{pair['worse']} ({_span(pair)})" for pair in pairs if not pair["apart"]]
    apart = [f"{pair['worse']} ({_span(pair)})" for pair in pairs if pair["apart"]]
    lines = [f"{best} cannot be told apart from {', '.join(near)}, {drawn}."] if near else []
    return lines + ([f"{best} stays ahead of {', '.join(apart)}, {drawn}."] if apart else [])


def _span(pair: dict) -> str:
    if pair["low"] == pair["high"] == 0:
        return "equal"
    low, high = (f"{100 * pair[key]:+.2f}" for key in ("low", "high"))
    return f"{low} points" if low == high else f"{low} to {high} points"
