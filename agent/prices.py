"""What tokens cost: a dated table, and an honest None for a model that is not in it."""

from __future__ import annotations

import importlib
import math
import sys
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from agent.keys import LOCAL, provider_of
from xcd_model.errors import ModelError

tomllib: Any = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")


@dataclass(frozen=True)
class Prices:
    """A price table.

    Parameters
    ----------
    date, source : str
        When and where the prices were read.
    per_million : mapping of str to (float, float)
        Dollars per million input and output tokens, by DSPy model string.
    """

    date: str
    source: str
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
    """Read a price table, by default the one that is shipped.

    Raises
    ------
    ModelError
        With code ``prices`` if the file cannot be read, or an entry is not two prices of at least 0.
    """
    source = Path(path) if path else resources.files("agent") / "prices.toml"
    try:
        data = tomllib.loads(source.read_text(encoding="utf-8"))
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
