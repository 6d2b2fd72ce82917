"""`Briefing`: the inputs of the two questions, built from what the run knows at that moment."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from agent.bottleneck import HARDWARE_KEYS, bottleneck_of
from agent.contexts import hardware_text
from agent.language_card import language_card
from agent.picture import data_uri, picture_png
from agent.settings import Settings
from swizzle_sim.history import Attempt, rank
from swizzle_sim.scoring import Scorer
from swizzle_sim.swizzle import Swizzle

SHOWN_ATTEMPTS = 20  # of the history, the newest; the best is always among them
KEPT_OF_BOTTLENECK = ("tensors", "xcds_that_fetch_a_line", "per_xcd_l2_hit_rate_pct", "predicted_limiter")
NOTE = "bottleneck"
_XCDS = re.compile(r", \d+ XCDs?(?=\))")


class Notes(Protocol):
    """Where what was worked out for an attempt is kept: the transcript of a run, or memory."""

    def note(self, kind: str, number: int, value: Any) -> None:
        """Keep a value, unless there is one."""

    def noted(self, kind: str, number: int = 0) -> Any:
        """Return what was kept; None for nothing."""


class Briefing:
    """Builds prompts.

    Parameters
    ----------
    scorer : Scorer
    settings : Settings
    notes : Notes
        Keeps the bottleneck report of each attempt, so that it is worked out once.
    docs : str or None
        For the overload context.
    """

    def __init__(self, scorer: Scorer, settings: Settings, notes: Notes, docs: str | None):
        self.scorer, self.settings, self.notes = scorer, settings, notes
        self.tells_hardware = settings.context != "unaware"
        self._hardware = hardware_text(settings.context, scorer, docs)
        self._language = language_card(scorer.kernel, schedule=self.tells_hardware)
        if settings.stage_two:
            from agent.template import TEMPLATE_CARD

            self._language = f"{self._language}\n{TEMPLATE_CARD}"

    def memory(self) -> dict[str, Any]:
        """Inputs of the memory analysis."""
        trace = self.scorer.plan.trace
        touches = np.zeros(len(trace.tensors), np.int64)
        np.add.at(touches, trace.tensor[trace.template], trace.entries_per_template[trace.template])
        tensors = [
            {
                "tensor": t.name,
                "bytes": t.size_bytes,
                "bytes_touched_by_all_workgroups": int(n) * trace.line_bytes,
                "touches_per_line": round(float(n) / t.n_lines, 2),
            }
            for t, n in zip(trace.tensors, touches, strict=True)
        ]
        kernel = self.scorer.kernel
        summary = {
            "grid": str(kernel.grid),
            "workgroups": kernel.grid.num_pids,
            "sizes": dict(kernel.problem),
            "tensors": tensors,
            "sharing": " ".join(kernel.sharing.split()),
        }
        return {"kernel_source": kernel.triton_source, "access_summary": summary}

    def proposal(self, attempts: Sequence[Attempt], analysis: str) -> dict[str, Any]:
        """Inputs of the next proposal.

        Parameters
        ----------
        attempts : sequence of Attempt
            The baseline, then those of the models.
        analysis : str
            Memory analysis.
        """
        best = rank(attempts)[0]
        report = self.report(attempts[0])
        report = {**report, "best_pct": round(100 * (best.score.l2_hit_rate if best.score else 0.0), 2)}
        inputs = {
            "original_kernel": self.scorer.kernel.triton_source,
            "bottleneck_report": report,
            "memory_analysis": analysis,
            "hardware": self._hardware,
            "language": self._language,
            "history": [self._past(a) for a in _shown(attempts[1:], best)],
        }
        if self.settings.image:
            import dspy

            inputs["picture"] = dspy.Image(data_uri(picture_png(self.scorer, self._order(best))))
        return inputs

    def report(self, attempt: Attempt) -> dict[str, Any]:
        """Bottleneck report of a scored attempt, from the notes if it is there."""
        kept = self.notes.noted(NOTE, attempt.number)
        if kept is None:
            if attempt.score is None:
                return {}
            found = bottleneck_of(self.scorer, self._order(attempt), attempt.score, best=attempt.score.l2_hit_rate)
            self.notes.note(NOTE, attempt.number, found.as_dict(hardware=self.tells_hardware))
            kept = self.notes.noted(NOTE, attempt.number)
        return kept

    def _order(self, attempt: Attempt) -> np.ndarray:
        return self.scorer.permutation(Swizzle.parse(attempt.source))

    def _past(self, attempt: Attempt) -> dict[str, Any]:
        """One attempt as the model sees it."""
        entry = {
            "attempt": attempt.number,
            "swizzle": attempt.source,
            "result": attempt.verdict.get("code", ""),
            "feedback": attempt.critique if self.tells_hardware else _XCDS.sub("", attempt.critique),
        }
        if "template" in attempt.verdict:
            entry["template"] = entry.pop("swizzle") if attempt.score is None else attempt.verdict["template"]
        if attempt.score is None:
            return entry
        report = self.report(attempt)
        keys = [k for k in KEPT_OF_BOTTLENECK if k in report and (self.tells_hardware or k not in HARDWARE_KEYS)]
        return entry | {
            "l2_hit_rate_pct": round(100 * attempt.score.l2_hit_rate, 2),
            "speedup": round(attempt.score.speedup, 3),
            "bottleneck": {key: report[key] for key in keys},
        }


def _shown(attempts: Sequence[Attempt], best: Attempt) -> list[Attempt]:
    """The newest attempts, and the best one however old it is."""
    newest = list(attempts[-SHOWN_ATTEMPTS:])
    if best.number and all(a.number != best.number for a in newest):
        newest = [best, *newest[1:]]
    return newest
