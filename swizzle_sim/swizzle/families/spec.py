"""Specs such as ``contiguous+group_m(size=8)``: families by name, with parameters, one after the other.

A placement takes ``pid`` to ``pid`` and an order reads ``pid``, so their texts compose by concatenation: every
temporary of a family is assigned before it is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import pairwise

from swizzle_sim.swizzle.families.attention import ATTENTION
from swizzle_sim.swizzle.families.blocks import BLOCKS
from swizzle_sim.swizzle.families.boxes import BOXES
from swizzle_sim.swizzle.families.curves import CURVES
from swizzle_sim.swizzle.families.nouns import Family
from swizzle_sim.swizzle.families.order import ORDERS
from swizzle_sim.swizzle.families.panels import PANELS
from swizzle_sim.swizzle.families.placement import PLACEMENTS
from xcd_model.errors import LanguageError, UnknownName

FAMILIES: dict[str, Family] = {
    family.name: family for family in (*PLACEMENTS, *ORDERS, *CURVES, *BLOCKS, *PANELS, *ATTENTION, *BOXES)
}

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


def parse_spec(spec: str) -> tuple[Part, ...]:
    """Families and parameters of a spec, defaults filled in.

    Parameters
    ----------
    spec : str
        ``name`` or ``name(parameter=integer, ...)``, joined by ``+``: placements first, then at most one order.

    Returns
    -------
    parts : tuple of (Family, dict of str to int)

    Raises
    ------
    UnknownName
        If no family, or no parameter of it, has that name; offers the nearest.
    LanguageError
        With code ``parameter`` if a value is not an integer in range or is given twice, with code ``syntax`` if the
        text is no spec, with code ``result`` if something follows an order.
    """
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
            raise LanguageError(
                f"{spec.strip()!r}: {before.name} answers {', '.join(before.answers)}, so {after.name} cannot follow "
                f"it; write placements ({', '.join(one.name for one in PLACEMENTS)}) first and one order last",
                filename="<spec>",
                code="result",
            )
    return parts


def spec_of(parts: Iterable[tuple[Family | str, Mapping[str, int]]]) -> str:
    """Spec of families and parameters, in canonical spelling, every parameter written: undoes `parse_spec`.

    Raises
    ------
    UnknownName, LanguageError
        As `parse_spec` does.
    """
    pieces = []
    for one, params in parts:
        name = one if isinstance(one, str) else one.name
        given = ", ".join(f"{key}={value}" for key, value in params.items())
        pieces.append(f"{name}({given})" if given else name)
    return "+".join(_spelled(one, params) for one, params in parse_spec("+".join(pieces)))


def family(spec: str) -> str:
    """Text in the language of a spec.

    Parameters
    ----------
    spec : str
        As `parse_spec` reads it.

    Returns
    -------
    text : str
        Ready for `parse_form`.

    Raises
    ------
    UnknownName, LanguageError
        As `parse_spec` does.
    """
    parts = parse_spec(spec)
    if len(parts) == 1:
        return parts[0][0].text(**parts[0][1])
    return "".join(f"# {_spelled(one, params)}\n{one.text(**params)}" for one, params in parts)


def _spelled(one: Family, params: Mapping[str, int]) -> str:
    given = ", ".join(f"{key}={params[key]}" for key in one.parameters)
    return f"{one.name}({given})" if given else one.name


def _parse_part(part: str) -> Part:
    match = _PART.fullmatch(part)
    if match is None:  # is_spec has looked already
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
