"""`Settings` and `Inputs` of a run of the llm proposer, and `Prices` of tokens: a dated table, None where unknown."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from importlib import resources
from pathlib import Path
from typing import Any

from swizzle_sim.search.extensions import is_own, load_own
from xcd_model.errors import ModelError
from xcd_model.files import read_text
from xcd_model.spec.load import tomllib

from .contexts import CONTEXTS, GROUP
from .providers import LOCAL, check_base, provider_of

# Settings that a resumed run may change: they bound its length and shape no prompt.
LIMITS = (
    "iterations",
    "max_tokens",
    "max_dollars",
    "max_minutes",
    "timeout_s",
    "tries",
    "api_base",
    "compile",
    "no_compare",
)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What shapes a run of the proposer.

    Parameters
    ----------
    models : tuple of str
        DSPy model strings; several share one history.
    api_base : str or None
        Of an OpenAI-compatible server; it serves all models.
    context : str
        aware, unaware, overload, an entry point of ``swizzle_sim.contexts``, or ``FILE.py:FUNCTION``, which takes the
        `Scorer` and gives the text on the hardware.
    iterations, candidates : int
        Iterations, and candidates in each.
    max_tokens : int or None
        Of all prompts and replies together.
    max_dollars, max_minutes : float or None
    temperature : float or None
        None leaves it to the provider.
    reply_tokens : int or None
        Most tokens of one reply; None leaves it to the provider.
    timeout_s : float [s]
        For one answer.
    tries : int
        Requests for one answer before the iteration is given up.
    structured : bool
        Constrain answers by a JSON schema, for servers that can and small models that must.
    image : bool
        Add a picture of the best swizzle.
    seed : int
        Sent to models that take one.
    stage_two : int
        Full replays that search the parameters of each answer, which is then a template; 0 for plain formulas.
    compile : bool
        Compile each order that is scored, and tell the model what it takes in registers and workgroups.
    no_compare : bool
        Leave out the best families and the search that stand beside the models' orders at the end.
    """

    models: tuple[str, ...]
    api_base: str | None = None
    context: str = "aware"
    iterations: int = 5
    candidates: int = 1
    max_tokens: int | None = None
    max_dollars: float | None = None
    max_minutes: float | None = None
    temperature: float | None = None
    reply_tokens: int | None = None
    timeout_s: float = 300.0
    tries: int = 4
    structured: bool = False
    image: bool = False
    seed: int = 0
    stage_two: int = 0
    compile: bool = False
    no_compare: bool = False

    def __post_init__(self):
        object.__setattr__(self, "models", tuple(self.models))
        check_base(self.api_base)
        if not self.models or not all(model.strip() for model in self.models):
            raise ModelError("name a model, such as --model openai/gpt-4o", code="no-model")
        if len(set(self.models)) < len(self.models):
            raise ModelError(f"a model is named twice: {', '.join(self.models)}", code="no-model")
        if self.context not in CONTEXTS and not is_own(self.context):
            load_own(self.context, GROUP, CONTEXTS)
        for name in ("iterations", "candidates", "tries", "timeout_s"):
            if getattr(self, name) <= 0:
                raise ModelError(f"{name} = {getattr(self, name)}: more than 0", code="setting")

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {**asdict(self), "models": list(self.models)}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Settings:
        """Inverse of `as_dict`; unknown keys are left out."""
        known = {field.name for field in fields(cls)}
        return cls(**{key: value for key, value in values.items() if key in known})

    def prompts(self) -> dict[str, Any]:
        """The part that shapes the prompts: a resumed run must agree on it, and may differ in `LIMITS`."""
        return {key: value for key, value in self.as_dict().items() if key not in LIMITS}


@dataclass(frozen=True)
class Prices:
    """A price table."""

    date: str  # when and where the prices were read
    source: str
    # mapping of str to (float, float): dollars per million input and output tokens, by DSPy model string
    per_million: dict[str, tuple[float, float]]

    def dollars(self, model: str, input_tokens: int | None, output_tokens: int | None) -> float | None:
        """Cost of one answer [dollars]; None where the price or the tokens are unknown, 0 on a server of one's own."""
        if provider_of(model) in LOCAL:
            return 0.0
        rates = self.rates(model)
        if rates is None or input_tokens is None or output_tokens is None:
            return None
        return (input_tokens * rates[0] + output_tokens * rates[1]) / 1e6

    def rates(self, model: str) -> tuple[float, float] | None:
        """Prices of a model; a dated name such as ``gpt-4o-2024-08-06`` is priced as the name without its date."""
        name = model if "/" in model else f"openai/{model}"
        parts = name.split("-")
        for length in range(len(parts), 0, -1):
            dropped = parts[length:]
            if not all(part.isdigit() for part in dropped):
                break
            if (found := self.per_million.get("-".join(parts[:length]))) is not None:
                return found
        return None


def load_prices(path: str | Path | None = None) -> Prices:
    """Read a price table, by default the one that is shipped."""
    source = Path(path) if path else resources.files(__package__) / "prices.toml"
    try:
        data = tomllib.loads(read_text(str(source)))
        table = {model: (float(row["input"]), float(row["output"])) for model, row in data["models"].items()}
        if not all(0 <= price < math.inf for pair in table.values() for price in pair):
            raise ValueError("a price is at least 0 and finite")
        return Prices(str(data["date"]), str(data["source"]), table)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ModelError(
            f"{source}: not a price table ({type(error).__name__}: {error}); it has date, source and [models] with "
            f'"provider/name" = {{ input = 2.5, output = 10 }} in dollars per million tokens',
            code="prices",
        ) from error


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """What a run reads besides kernel and GPU; stored in the run, so that it is repeated without the files.

    ``docs`` is the document of the overload context, ``program`` the state of a tuned program.
    """

    docs: str | None = None
    program: Mapping[str, Any] | None = None
    prices: Prices

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {"docs": self.docs, "program": self.program, "prices": vars(self.prices)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Inputs:
        """Inverse of `as_dict`."""
        prices = values["prices"]
        table = {model: (pair[0], pair[1]) for model, pair in prices["per_million"].items()}
        return cls(
            docs=values["docs"], program=values["program"], prices=Prices(prices["date"], prices["source"], table)
        )
