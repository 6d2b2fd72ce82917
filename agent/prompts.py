"""The two questions of the loop: their inputs (`Briefing`), the DSPy programs that pose them, and the picture."""

from __future__ import annotations

import base64
import io
import json
import re
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.report.bottleneck import bottleneck_of, legend
from swizzle_sim.report.display.tiles import plane, tile_map
from swizzle_sim.rewrite.price import price
from swizzle_sim.search.history import Attempt
from swizzle_sim.search.ranking import TIME, Ranking, times_note
from xcd_model import xcd_of
from xcd_model.analysis.schedule import misses_of_workgroups, sampled_touches, schedule_of
from xcd_model.errors import CompileError, ModelError, SwizzleSimError
from xcd_model.files import read_text

from .contexts import TEMPLATE_CARD, access_summary, hardware_text, language_card, source_of
from .providers import load_dspy
from .settings import Settings
from .transcript import Transcript

NOTE, REGISTERS = "bottleneck", "registers"  # kind of note, and its key, that hold the words of `RemapWords`
HARDWARE = "hardware"  # kind of note: the text of the context
SHOWN_ATTEMPTS = 20  # of the history, the newest; the best is always among them
SHOWN_OF_REPORT = (  # of an attempt: under 250 tokens with the swizzle
    "l2_hit_rate_pct",
    "points_left",
    "time_us",
    "speedup",
    "makespan_over_ideal",
    "misses_pct",
    "xcds_that_touch_a_line",
    "limit",
    REGISTERS,
)
_XCDS = re.compile(r", \d+ XCDs?(?=\))|\b(?:NUM_XCDS|num_xcds), ")  # in messages of the check and of the parser


class Briefing:
    """Builds the inputs of a prompt from the state of a run."""

    def __init__(
        self,
        scorer: Scorer,
        settings: Settings,
        notes: Transcript,
        docs: str | None,
        ranking: Ranking | None = None,
        price_of: Callable[[Attempt], str] = lambda attempt: "",
    ):
        self.ranking, self.price_of = ranking or Ranking(), price_of
        self.scorer, self.settings, self.notes = scorer, settings, notes
        self.with_hardware = settings.context != "unaware"
        if (known := notes.noted(HARDWARE)) is None:  # a repeated run needs no file of the user's
            notes.note(HARDWARE, 0, known := hardware_text(settings.context, scorer, docs))
        self._hardware = known
        self._language = language_card(scorer.kernel, schedule=self.with_hardware)
        if settings.stage_two:
            self._language = f"{self._language}\n{TEMPLATE_CARD}"

    @cached_property
    def source(self) -> str:
        """The kernel as it is shown."""
        return source_of(self.scorer.kernel)

    @cached_property
    def access(self) -> dict[str, Any]:
        """What is known of the kernel's accesses whatever the order."""
        return access_summary(self.scorer, hardware=self.with_hardware)

    @property
    def analysis(self) -> str:
        """How the kernel shares data, in its own words; empty where it says nothing, and a model is asked."""
        return " ".join(self.scorer.kernel.sharing.split())

    def memory(self) -> dict[str, Any]:
        """Inputs of the memory analysis."""
        return {"kernel_source": self.source, "access_summary": self.access}

    def proposal(self, attempts: Sequence[Attempt], analysis: str) -> dict[str, Any]:
        """Inputs of the next proposal."""
        best = self.ranking.order(attempts)[0]
        places = self.ranking.places(attempts, with_launch_order=True)
        inputs = {
            "original_kernel": self.source,
            "bottleneck_report": self._launch_order(attempts, best, places[0]),
            "memory_analysis": analysis,
            "hardware": self._hardware,
            "language": self._language,
            "history": [self._past(a, places.get(a.number)) for a in _shown(attempts[1:], best)],
        }
        if self.settings.image:
            import dspy

            png = base64.b64encode(picture_png(self.scorer, self._order(best))).decode("ascii")
            inputs["picture"] = dspy.Image(f"data:image/png;base64,{png}")
        return inputs

    def _launch_order(self, attempts: Sequence[Attempt], best: Attempt, place: str) -> dict[str, Any]:
        """Objective, best so far, and everything of the launch order."""
        objective = self.ranking.sentence()
        if self.with_hardware and self.ranking.main == TIME:
            objective += " " + times_note(self.scorer.gpu.name, self.scorer.replay, self.scorer.work_class)
        report = {"objective": objective, "best": self._best(attempts, best), **self.access}
        figures = {key: value for key, value in self.report(attempts[0]).items() if key != "speedup"}
        report["launch_order"] = {"place": place, **figures}
        if warm := self._launches(attempts[0]):
            report["launches"] = warm
        if self.with_hardware:
            report["words"] = legend(map(self.report, attempts))
        return report

    def _best(self, attempts: Sequence[Attempt], best: Attempt) -> dict[str, Any]:
        """The best attempt so far; with a warning where it is predicted slower than the launch order."""
        found: dict[str, Any] = {"attempt": best.number or "launch order"}
        report = self.report(best)
        figures = ("l2_hit_rate_pct", "points_left", "makespan_over_ideal", "time_us")
        found |= {key: report[key] for key in figures if key in report}
        if "speedup" in report and any(one.number == best.number for one in self.ranking.slower(attempts)):
            found["warning"] = f"predicted slower than the launch order: speedup {report['speedup']}"
        return found

    def _launches(self, baseline: Attempt) -> str:
        """What the counts of a kernel that is launched repeatedly are counts of."""
        score, gpu = baseline.score, self.scorer.gpu
        if score is None or score.launch == 1:
            return ""
        text = f"launched repeatedly on the same arrays; counted is launch {score.launch}"
        text += ", which counts as the one before it" if score.steady else ""
        if not self.with_hardware:
            return text
        kept = "keep" if gpu.l2.kept_between_launches else "do not keep"
        text += f"; the L2s {kept} what the launch before left in them"
        if gpu.mall:
            text += f", the Infinity Cache {'keeps' if gpu.mall.kept_between_launches else 'does not keep'} it"
        return text

    def report(self, attempt: Attempt) -> dict[str, Any]:
        """Bottleneck report of a scored attempt, from the notes if it is there."""
        known = self.notes.noted(NOTE, attempt.number)
        if known is None:
            if attempt.score is None:
                return {}
            told = {"times": self.ranking.main == TIME, "hardware": self.with_hardware}
            found = bottleneck_of(self.scorer, self._order(attempt), attempt.score, **told)
            if self.with_hardware and (words := self.price_of(attempt)):
                found[REGISTERS] = words
            self.notes.note(NOTE, attempt.number, found)
            known = self.notes.noted(NOTE, attempt.number)
        return known

    def _order(self, attempt: Attempt) -> np.ndarray:
        return self.scorer.permutation(attempt.swizzle)

    def _past(self, attempt: Attempt, place: str | None) -> dict[str, Any]:
        """One attempt as an entry of the prompt's history."""
        entry: dict[str, Any] = {"attempt": attempt.number}
        if place:
            entry["place"] = place
        entry |= {"swizzle": attempt.source.strip(), "result": attempt.verdict.get("code", "")}
        if attempt.critique:
            entry["feedback"] = attempt.critique if self.with_hardware else _XCDS.sub("", attempt.critique)
        if "template" in attempt.verdict:
            entry["template"] = entry.pop("swizzle") if attempt.score is None else attempt.verdict["template"]
        report = self.report(attempt)
        return entry | {key: report[key] for key in SHOWN_OF_REPORT if key in report}


class RemapWords:
    """What each order takes in registers and workgroups a CU: compiled, or read from the run that is repeated."""

    def __init__(self, scorer: Scorer, compiles: bool, recorded: Transcript | None):
        self._scorer, self._compiles, self._recorded = scorer, compiles, recorded

    def __call__(self, attempt: Attempt) -> str:
        """Such as ``118 -> 140 registers, 2 -> 1 workgroups a CU``; empty where nothing was compiled."""
        if self._recorded is not None:
            return str((self._recorded.noted(NOTE, attempt.number) or {}).get(REGISTERS, ""))
        if not self._compiles or attempt.number == 0:
            return ""
        try:
            return str(price(self._scorer.kernel, attempt.swizzle, self._scorer.gpu))
        except CompileError:  # no compiler, or not for this kernel: the next would fail as well
            self._compiles = False
        except SwizzleSimError:  # this order cannot be put into the kernel
            pass
        return ""


def _shown(attempts: Sequence[Attempt], best: Attempt) -> list[Attempt]:
    """The newest attempts, and the best one however old it is."""
    newest = list(attempts[-SHOWN_ATTEMPTS:])
    if best.number and all(a.number != best.number for a in newest):
        newest = [best, *newest[1:]]
    return newest


def propose_program(*, image: bool, template: bool = False, state: dict[str, Any] | None = None) -> Any:
    """Predictor that proposes a swizzle, or a template."""
    dspy = load_dspy()
    from .signatures import ProposeSwizzle, ProposeSwizzleSeeing, ProposeTemplate, ProposeTemplateSeeing

    plain, seeing = (ProposeTemplate, ProposeTemplateSeeing) if template else (ProposeSwizzle, ProposeSwizzleSeeing)
    predict = dspy.Predict(seeing if image else plain)
    if state is not None:
        try:
            predict.load_state(state)
        except Exception as error:
            raise ModelError(
                f"not a program of tune-prompt: {type(error).__name__}: {error}", code="program"
            ) from error
        predict.lm = None  # a saved program names the model it was tuned with; the run names its own
    return predict


def memory_program() -> Any:
    """Predictor of the memory analysis."""
    dspy = load_dspy()
    from .signatures import AnalyzeMemory

    return dspy.Predict(AnalyzeMemory)


def read_program(path: str | Path) -> dict[str, Any]:
    """State of a program that `tune-prompt` saved."""
    try:
        state = json.loads(read_text(path))
    except (OSError, ValueError) as error:
        raise ModelError(f"{path}: not a program that can be read ({error})", code="program") from error
    if not isinstance(state, dict) or "signature" not in state:
        raise ModelError(f"{path}: not a program of tune-prompt: it has no signature", code="program")
    return state


def picture_png(scorer: Scorer, order: np.ndarray) -> bytes:
    """PNG of one order: tile to XCD on the left, misses of each tile on the right; the same bytes every time."""
    from matplotlib import colormaps
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.colors import ListedColormap
    from matplotlib.figure import Figure

    plan, grid = scorer.plan, scorer.kernel.grid
    schedule = schedule_of(plan, order, workgroups_per_cu=scorer.occupancy)
    missed = misses_of_workgroups(plan, schedule, sampled_touches(plan, schedule))
    xcd = tile_map(grid, xcd_of(order.size, scorer.gpu, scorer.kernel.programs), order)
    figure = Figure(figsize=(10, 5), dpi=80, layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    xcds = min(10, scorer.gpu.xcds)
    colours = ListedColormap(colormaps["tab10"](range(xcds)))
    shown = left.imshow(_masked(xcd), cmap=colours, vmin=-0.5, vmax=xcds - 0.5, interpolation="nearest")
    left.set_title("XCD that computes each tile")
    figure.colorbar(shown, ax=left, ticks=range(xcds))
    misses = right.imshow(_masked(plane(grid, missed)), cmap="viridis_r", interpolation="nearest")
    right.set_title("L2 misses of each tile [lines, estimated]")
    figure.colorbar(misses, ax=right)
    for axes in (left, right):
        axes.set_xlabel("tile column (pid_n)")
        axes.set_ylabel("tile row (pid_m)")
    out = io.BytesIO()
    figure.savefig(out, format="png", metadata={"Software": None})
    return out.getvalue()


def _masked(values: np.ndarray) -> np.ma.MaskedArray:
    return np.ma.masked_less(values, 0)
