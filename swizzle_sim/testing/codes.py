"""Codes of what `check` finds: SW1 a remap that is wrong, SW2 one that is skipped, SW3 what cannot be read.

A code is printed with its finding, stands in every document, and in a baseline, so it never changes its meaning.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Rule:
    """One kind of finding."""

    code: str
    name: str  # as SARIF has it
    meaning: str  # a sentence without its stop
    kinds: tuple[str, ...] = ()  # codes of counter-examples and errors
    words: str = ""  # of a message, as an expression: what was skipped has no code of its own

    @property
    def level(self) -> str:
        """SARIF's."""
        return "note" if self.code.startswith("SW2") else "error"


# The first that fits a finding is taken; SW101, SW299 and SW399 are what no other fits.
RULES = (
    Rule("SW101", "not-a-bijection", "Two workgroups compute one tile, or a tile is computed by nobody"),
    Rule("SW102", "leaves-32-bits", "A value leaves the signed 32-bit range", ("overflow",)),
    Rule("SW103", "division", "A division by zero, or of opposite signs", ("division-by-zero", "signed-division")),
    Rule("SW104", "shift", "A shift by less than 0 or more than 31 bits", ("shift",)),
    Rule("SW105", "endless", "A workgroup takes too many steps", ("step-limit",)),
    Rule("SW106", "raises", "A function that is called raises, or ends its process", ("raised", "died")),
    Rule("SW107", "torn-cluster", "Workgroups of one cluster do not stay together", ("torn-cluster",)),
    Rule("SW108", "deadlock", "A tile is handed out before one that it waits for", ("deadlock",)),
    Rule("SW201", "no-value", "A name has no value: give it one in a comment", words="no value|some paths only"),
    Rule("SW202", "no-tile", "No usual name holds the tile: say which, as answer=", words="say which names"),
    Rule("SW203", "no-extent", "What a coordinate counts up to is not known: say it, as tiles=", words="tiles="),
    Rule("SW204", "fixed-launch", "Constants of the file fix the launch: say it, as grids=", words="constant of the"),
    Rule("SW205", "after-memory", "The tile is worked out after a memory access", words="memory access"),
    Rule("SW206", "loop", "A loop may not meet every tile once", ("loop",)),
    Rule("SW207", "integer-type", "A value is narrow or unsigned, or C does not define it", ("unsigned",), "is narrow"),
    Rule("SW208", "return", "A helper returns inside a statement, or not on every path", ("result",), "returns?( |$)"),
    Rule("SW209", "too-large", "It is too much to read or to try", ("limit",), r"(more than|at most) \d"),
    Rule(
        "SW210", "construct", "A construct is not modelled", words="not modelled|not read|language|builtin|names take"
    ),
    Rule("SW299", "not-checked", "It is not read for another reason"),
    Rule("SW301", "file", "A file cannot be read", ("file",)),
    Rule("SW302", "syntax", "A text is no text of its language", ("syntax",)),
    Rule("SW303", "option", "A comment or an option says something that does not fit", ("option", "unknown-name")),
    Rule("SW399", "not-readable", "What has a mark, or is a text, is outside of what is read"),
)
_BEGINS = {"failed": "SW1", "skipped": "SW2", "error": "SW3"}


def rule_of(status: str, code: str, message: str) -> Rule:
    """Rule of a finding, by its status, its code and its wording."""
    first = message.partition("\n")[0]  # behind it lines of a file are shown
    of_status = [rule for rule in RULES if rule.code.startswith(_BEGINS[status])]
    for rule in of_status:
        if code in rule.kinds or (rule.words and re.search(rule.words, first)):
            return rule
    return of_status[0 if status == "failed" else -1]


def codes_table() -> str:
    """Table of the codes, for the documentation."""
    rows = [f"| {rule.code} | {rule.name} | {rule.meaning} |" for rule in RULES]
    return "\n".join(["| code | name | |", "| --- | --- | --- |", *rows])
