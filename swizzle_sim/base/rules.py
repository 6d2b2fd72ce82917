"""JSON that somebody else may have written, held against rules before any value of it is used: `check`.

A rule is a `Rule` of one value, a list with the rule of its items, or a mapping with the rules of its keys: one that
ends in ``?`` may be missing, and that of `ANY` holds for every key. Keys without a rule may hold anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, NoReturn

ANY = "*"


class Rule(NamedTuple):
    """What one value has to be."""

    words: str
    holds: Callable[[Any], bool]


TEXT = Rule("a text", lambda value: isinstance(value, str))
TRUTH = Rule("true or false", lambda value: isinstance(value, bool))


def integer(least: int, most: int) -> Rule:
    """Rule of an integer between two, both included; a truth value is none."""
    return Rule(f"an integer of {least} to {most}", lambda value: type(value) is int and least <= value <= most)


def check(value: Any, rule: Any, key: str, refuse: Callable[[str, Any, str], NoReturn]) -> None:
    """Call ``refuse(key, value, rule in words)``, which raises, with the first value that breaks a rule."""
    if isinstance(rule, Rule):
        if not rule.holds(value):
            refuse(key, value, rule.words)
    elif isinstance(rule, list):
        if not isinstance(value, list):
            refuse(key, value, "a list")
        for one in value:
            check(one, rule[0], key, refuse)
    else:
        if not isinstance(value, Mapping):
            refuse(key, value, "a mapping")
        for name, inner in rule.items():
            needed = name.removesuffix("?")
            if name != ANY and name == needed and name not in value:
                refuse(f"{key}.{name}".lstrip("."), "missing", "needed")
            for one in value if name == ANY else {needed} & value.keys():
                check(value[one], inner, f"{key}.{one}".lstrip("."), refuse)
