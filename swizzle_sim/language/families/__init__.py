"""The published families of swizzles, as texts of the language with parameters: `families.toml`.

A *placement* decides which XCD gets which ids, an *order* walks the tile grid; a spec such as
``contiguous+group_m(size=8)`` composes them: a placement maps ``pid`` to ``pid`` and an order reads ``pid``, so their
texts follow one another, and every temporary of a family is assigned before it is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from swizzle_sim.language.grid import Grid, check_xcds
from swizzle_sim.language.ir import evaluate
from swizzle_sim.language.parse import parse_condition
from xcd_model.errors import LanguageError, UnknownName
from xcd_model.spec.load import tomllib

__all__ = [
    "FAMILIES",
    "Family",
    "Parameter",
    "condition_of",
    "family",
    "holds",
    "is_spec",
    "names_of",
    "parse_spec",
    "spec_of",
]


@dataclass(frozen=True)
class Parameter:
    """One integer parameter of a family."""

    default: int  # default value, and the range, both ends included
    low: int
    high: int
    doc: str  # what it counts


@dataclass(frozen=True)
class Family:
    """A published swizzle, as a text of the language with parameters."""

    name: str  # name in a spec
    summary: str  # one sentence
    template: str  # the text, with ``{name}`` for a parameter
    source: str  # paper or project that published it
    parameters: Mapping[str, Parameter]  # in the order in which a spec writes them
    # 0 for a placement, which maps ``pid`` to ``pid`` on any grid. 2 for an order of tiles, which reads ``num_pid_m,
    # num_pid_n`` and assigns ``pid_m, pid_n``. 3 for an order of boxes, which reads ``num_pid_x, num_pid_y, num_pid_z``
    # and assigns ``pid_x, pid_y, pid_z``.
    axes: int
    # where it is a bijection, exactly: ``"always"`` or a condition of the language over ``num_pids``, ``num_pid_m``,
    # ``num_pid_n``, ``num_xcds`` and the parameters, on grids that have the axes
    condition: str
    spelled: Mapping[str, Mapping[str, str]]  # what stands for a parameter, by its value, ``any`` for a name

    def text(self, **params: int | str) -> str:
        """Text of the language with a value, or a name, for every parameter."""
        of_values = {key: texts.get(str(params[key]), texts["any"]) for key, texts in self.spelled.items()}
        return self.template.format(**params | {key: text.format(**params) for key, text in of_values.items()})

    @property
    def results(self) -> tuple[str, ...]:
        """Coordinates that its text computes."""
        return {0: ("pid",), 2: ("pid_m", "pid_n"), 3: ("pid_x", "pid_y", "pid_z")}[self.axes]


def _read_families() -> dict[str, Family]:
    data = tomllib.loads(Path(__file__).with_name("families.toml").read_text(encoding="utf-8"))
    texts = data.pop("parts")
    texts |= {name: one["text"].rstrip("\n") + "\n" for name, one in data.items()}

    def whole(text: str) -> str:
        return re.sub(r"<(\w+)>\n", lambda part: whole(texts[part[1]]), text)

    return {
        name: Family(
            name=name,
            summary=one["summary"],
            template=whole(texts[name]),
            source=one["source"],
            parameters={
                key: Parameter(rule["default"], rule.get("least", 1), rule.get("most", 1 << 16), rule["doc"])
                for key, rule in one.get("parameters", {}).items()
            },
            axes=one.get("axes", 0),
            condition=one.get("condition", "always"),
            spelled={
                key: {value: whole(text) for value, text in texts_of.items()}
                for key, texts_of in one.get("spelled", {}).items()
            },
        )
        for name, one in data.items()
    }


FAMILIES = _read_families()

Part = tuple[Family, dict[str, int]]

# One alternative per character class and nothing nested: hostile text costs linear time.
_PART = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_]*)\s*(?:\(([^()+\n]*)\))?\s*")
_PARAMETER = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(\S+)\s*")
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")
_LONGEST = 1000


def is_spec(text: str) -> bool:
    """Whether a text has the shape of a spec, rather than of a candidate; the names in it may still be unknown."""
    one_line = len(text) <= _LONGEST and "\n" not in text.strip()
    return one_line and all(_PART.fullmatch(part) for part in text.strip().split("+"))


def names_of(spec: str) -> set[str]:
    """Names in a text with the shape of a spec."""
    return {part.partition("(")[0].strip() for part in spec.split("+")}


def parse_spec(spec: str) -> tuple[Part, ...]:
    """Families and parameters of a spec, defaults filled in."""
    if not is_spec(spec):
        shown = spec if len(spec) <= 80 else spec[:77] + "..."
        raise LanguageError(
            f"{shown!r} is not a spec: write family or family(parameter=integer), joined by +, "
            "such as contiguous+group_m(size=8)",
            filename="<spec>",
            code="syntax",
        )
    parts = tuple(_parse_part(part) for part in spec.strip().split("+"))
    for (before, _), (after, _) in pairwise(parts):
        if before.axes:
            placements = ", ".join(one.name for one in FAMILIES.values() if not one.axes)
            raise LanguageError(
                f"{spec.strip()!r}: {before.name} assigns {', '.join(before.results)}, so {after.name} cannot follow "
                f"it; write placements ({placements}) first and one order last",
                filename="<spec>",
                code="result",
            )
    return parts


def spec_of(parts: Iterable[tuple[Family | str, Mapping[str, int]]]) -> str:
    """Spec of families and parameters, in canonical spelling, every parameter written: undoes `parse_spec`."""
    pieces = []
    for one, params in parts:
        name = one if isinstance(one, str) else one.name
        given = ", ".join(f"{key}={value}" for key, value in params.items())
        pieces.append(f"{name}({given})" if given else name)
    return "+".join(_spelled(one, params) for one, params in parse_spec("+".join(pieces)))


def family(spec: str) -> str:
    """Text in the language of a spec, ready for `parse_form`; raises as `parse_spec`."""
    parts = parse_spec(spec)
    if len(parts) == 1:
        return parts[0][0].text(**parts[0][1])
    return "".join(f"# {_spelled(one, params)}\n{one.text(**params)}" for one, params in parts)


def _spelled(one: Family, params: Mapping[str, int]) -> str:
    given = ", ".join(f"{key}={params[key]}" for key in one.parameters)
    return f"{one.name}({given})" if given else one.name


def _parse_part(part: str) -> Part:
    match = _PART.fullmatch(part)
    if match is None:  # is_spec has checked
        raise LanguageError(f"{part!r} is not family(parameter=integer)", filename="<spec>", code="syntax")
    name, given = match.groups()
    if name not in FAMILIES:
        raise UnknownName("swizzle family", name, FAMILIES)
    one = FAMILIES[name]
    params = {key: parameter.default for key, parameter in one.parameters.items()}
    seen = set()
    for piece in given.split(",") if given and given.strip() else ():
        key, value = _parse_parameter(one, piece)
        if key in seen:
            raise LanguageError(f"{name}: {key} is given twice", filename="<spec>", code="parameter")
        seen.add(key)
        params[key] = value
    return one, params


def _parse_parameter(one: Family, piece: str) -> tuple[str, int]:
    match = _PARAMETER.fullmatch(piece)
    if match is None:
        known = ", ".join(f"{key}=integer" for key in one.parameters) or "none"
        raise LanguageError(
            f"{one.name}: {piece.strip()!r} is not parameter=integer; its parameters: {known}",
            filename="<spec>",
            code="parameter",
        )
    key, value = match.groups()
    if key not in one.parameters:
        raise UnknownName(f"parameter of {one.name}", key, one.parameters)
    rule = one.parameters[key]
    if not _INTEGER.fullmatch(value) or not rule.low <= int(value) <= rule.high:
        raise LanguageError(
            f"{one.name}: {key} = {value[:40]}; it is an integer from {rule.low} to {rule.high} ({rule.doc})",
            filename="<spec>",
            code="parameter",
        )
    return key, int(value)


def condition_of(spec: str) -> str:
    """Condition under which a spec is a bijection, in addition to an order's need for a grid with its axes.

    A composition is a bijection exactly where each part is: once a map of a finite set onto itself has lost an id, no
    other map restores it.
    """
    parts = dict.fromkeys(one.condition for one, _ in parse_spec(spec) if one.condition != "always")
    return " and ".join(f"({part})" for part in parts) if len(parts) > 1 else next(iter(parts), "always")


def holds(spec: str, grid: Grid, num_xcds: int) -> bool:
    """Whether a spec is a bijection of a grid, decided from its stated condition without enumeration."""
    check_xcds(num_xcds)
    for one, params in parse_spec(spec):
        if (one.axes == 2 and grid.shape is None) or (one.axes == 3 and len(grid.launch) != 3):
            return False
        values = {**grid.counts, "num_xcds": num_xcds, **params}
        if one.condition != "always" and not evaluate(parse_condition(one.condition), values):
            return False
    return True
