"""`Templates`: a model's template as a candidate, the best that a search of its parameters finds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.search.bench import Bench, scorer_like
from swizzle_sim.search.candidates import Candidate
from swizzle_sim.search.ranking import Objective
from swizzle_sim.search.strategies.halving import landscape, search_on
from swizzle_sim.search.templates import read_template
from xcd_model.errors import LanguageError, SearchError


class Templates:
    """Searches the parameters of templates, ``evaluations`` full replays each."""

    def __init__(self, scorer: Scorer, objectives: Sequence[Objective], evaluations: int, seed: int):
        self._bench = Bench(scorer_like(scorer))  # with a scorer of its own: the run's remembers its latest replay
        self._how: dict[str, Any] = {"evaluations": evaluations, "seed": seed, "objectives": objectives}

    def candidate(self, text: str, name: str, proposer: str) -> Candidate:
        """Best candidate of a template, with what its parameters do as a note; or a refusal with the reason."""
        try:
            template = read_template(text)
            found = search_on(self._bench, [template], **self._how)
        except (LanguageError, SearchError) as error:
            refusal = f"template-{error.code}", str(error)
            return Candidate(name, text, proposer, {"template": text}, refusal=refusal)
        words, tried = landscape(template, found.attempts), found.attempts[1:]
        scored = sorted((a for a in tried if a.score is not None), key=lambda a: (a.verdict["costs"], a.number))
        told: dict[str, Any] = {"stage_two": {"tried": len(tried), "replays": len(scored)}, "template": text}
        if not scored:
            return Candidate(name, text, proposer, told, refusal=("template-nothing", words))
        told["parameters"] = scored[0].verdict["parameters"]
        return Candidate(f"{name} {scored[0].name}".strip(), scored[0].source, proposer, told, note=words)
