"""`Range`: the values that one parameter of a template may take."""

from __future__ import annotations

import re
from dataclasses import dataclass

from xcd_model.errors import LanguageError

MOST_VALUES = 1 << 16  # of one parameter
_NUMBER = r"(\d{1,10})"
_SPAN = re.compile(rf"(powers\s+)?{_NUMBER}\s*\.\.\s*{_NUMBER}(?:\s+step\s+{_NUMBER})?")
_LIST = re.compile(r"[\[{]([\s\d,]*)[\]}]")
FORMS = "low..high, low..high step n, powers low..high, or {1, 2, 5}"


@dataclass(frozen=True)
class Range:
    """Values of one parameter.

    Parameters
    ----------
    name : str
    values : tuple of int
        Rising, each once, none negative.
    text : str
        As it was written.
    """

    name: str
    values: tuple[int, ...]
    text: str

    @property
    def middle(self) -> int:
        """Value nearest the geometric middle: where a search begins."""
        low, high = max(1, self.values[0]), max(1, self.values[-1])
        return min(self.values, key=lambda value: abs(max(1, value) ** 2 - low * high))

    @property
    def is_span(self) -> bool:
        """Whether it holds every integer between its ends."""
        return self.values[-1] - self.values[0] + 1 == len(self.values)


def read_range(name: str, text: str, filename: str = "<template>") -> Range:
    """Read the values of a parameter.

    Parameters
    ----------
    name : str
    text : str
        ``1..512``, ``8..512 step 8``, ``powers 1..64`` (of two) or ``{1, 2, 5}``.
    filename : str
        Name for messages.

    Raises
    ------
    LanguageError
        With code ``parameter`` if it has no such form, or no value, or too many.
    """
    written = " ".join(text.split())
    try:
        return Range(name, read_values(written), written)
    except ValueError as rule:
        shown = written if len(written) <= 60 else written[:57] + "..."
        raise LanguageError(f"parameter {name}: {shown!r}: {rule}", filename=filename, code="parameter") from None


def read_values(written: str, forms: str = FORMS) -> tuple[int, ...]:
    """Values of a range, rising; ``forms`` is what to offer in place of what is none.

    Raises
    ------
    ValueError
        Says which rule is broken.
    """
    if span := _SPAN.fullmatch(written):
        values = _of_span(span)
    elif listed := _LIST.fullmatch(written):
        words = [word.strip() for word in listed[1].split(",")]
        if words and not words[-1]:
            words.pop()
        if not all(word.isdigit() and len(word) <= 10 for word in words):
            raise ValueError(f"a list holds integers of at least 0; write {forms}")
        values = tuple(sorted({int(word) for word in words}))
    else:
        raise ValueError(f"write {forms}")
    if not values:
        raise ValueError("there is no value in it")
    if values[-1] >= 2**31:
        raise ValueError("a value fits a signed 32-bit integer")
    return values


def _of_span(span: re.Match) -> tuple[int, ...]:
    low, high, step = int(span[2]), int(span[3]), int(span[4] or 1)
    if low > high:
        raise ValueError(f"{low} is more than {high}, so there is no value in it")
    if step < 1 or (span[1] and span[4]):
        raise ValueError("a step is at least 1, and powers take none")
    if span[1]:
        return tuple(2**k for k in range(32) if low <= 2**k <= high)
    if (high - low) // step >= MOST_VALUES:
        raise ValueError(f"over {MOST_VALUES} values: use a step, powers or a list")
    return tuple(range(low, high + 1, step))
