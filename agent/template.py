"""Two stages: the model writes a template, a search finds its parameters, the critique speaks of their landscape."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from agent.cascade import Cascade, Judgement
from agent.proposer import llm
from swizzle_sim.proposers import Proposed, Task
from swizzle_sim.scoring import Scorer
from swizzle_sim.templates import read_template
from swizzle_sim.tuning.bench import bench_of
from swizzle_sim.tuning.stage_two import landscape, search_on
from xcd_model.errors import LanguageError, SearchError

EVALUATIONS = 60  # full replays for each template

TEMPLATE_CARD = """\
A template is a swizzle with parameters that a search will choose. Its head declares each parameter with its range, and
conditions that the search has to keep; the statements below read the parameters as variables:
template windowed_chunks(chunk: 1..512, window: powers 1..64) requires num_pids >= num_xcds * chunk
    block = num_xcds * chunk
    ...
Ranges: low..high, low..high step n, powers low..high (of two), {1, 2, 5}. Conditions are those of the language, over
parameters, num_pids and the like, and the kernel's sizes; write 'requires' again for another. Every parameter is read
by the statements, and none is called like a name that has a value already. The template is a bijection for every
combination that its conditions allow."""


@dataclass(frozen=True, eq=False)
class Found(Judgement):
    """Judgement of a template: that of its best candidate.

    Parameters
    ----------
    source, name : str
        Of that candidate; the text of the model where there is none.
    """

    source: str = ""
    name: str = ""


class StageTwo:
    """Judges templates: parses, searches, and hands the best candidate to the cascade.

    Parameters
    ----------
    cascade : Cascade
    evaluations : int
        Full replays for each template.
    seed : int
    """

    def __init__(self, cascade: Cascade, evaluations: int, seed: int):
        self._cascade, self._evaluations, self._seed = cascade, evaluations, seed
        scorer = cascade.scorer
        self._bench = bench_of(scorer)  # another scorer: the cascade's recalls its latest replay

    @property
    def scorer(self) -> Scorer:
        """Scorer of the search."""
        return self._bench.main

    def judge(self, text: str, number: int) -> Found:
        """Judge one template, by the best of its candidates."""
        try:
            template = read_template(text)
            found = search_on(self._bench, [template], evaluations=self._evaluations, seed=self._seed)
        except LanguageError as error:
            return self._refused(text, f"template-{error.code}", str(error))
        except SearchError as error:
            return self._refused(text, f"template-{error.code}", str(error))
        tried = found.run.attempts[1:]
        told = landscape(template, found.run.attempts)
        scored = sorted((a for a in tried if a.score is not None), key=lambda a: (a.verdict["costs"], a.number))
        counts = {"stage_two": {"tried": len(tried), "replays": len(scored)}, "template": text}
        if not scored:
            return self._refused(text, "template-nothing", told, **counts)
        best = scored[0]
        judged = self._cascade.judge(best.source, number)
        feedback = f"{judged.feedback} {told}".strip()
        verdict = {**judged.verdict, **counts, "parameters": best.verdict["parameters"]}
        return Found(
            judged.code, judged.stage, feedback, verdict, judged.order, judged.score, source=best.source, name=best.name
        )

    @staticmethod
    def _refused(text: str, code: str, why: str, **more: Any) -> Found:
        verdict = {"bijective": False, "domain": "nowhere", "code": code, "stage": "template", "template": text, **more}
        return Found(code, "template", why, verdict, source=text)


def two_stage(task: Task) -> Proposed:
    """Run the loop with templates for the command line; options as those of `agent.proposer.llm`."""
    options = {key: value for key, value in task.options.items() if key != "evaluations"}
    evaluations = task.options.get("evaluations")
    if evaluations is not None or not task.resume:
        options["stage_two"] = evaluations or EVALUATIONS
    return llm(replace(task, options=options))
