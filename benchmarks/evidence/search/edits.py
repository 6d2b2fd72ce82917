"""Random edits of a formula: what a search without templates does."""

from __future__ import annotations

import random
import re

_NUMBER = re.compile(r"\b\d+\b")
_OPERATOR = re.compile(r" (//|%|\+|-|\*) ")
_NAME = re.compile(r"\b(num_xcds|num_pids|num_pid_m|num_pid_n|pid_m|pid_n|pid)\b")
_STEPS = (lambda n: n + 1, lambda n: max(0, n - 1), lambda n: 2 * n, lambda n: n // 2)


def edited(source: str, draw: random.Random) -> str:
    """A text with one number, operator or name changed, or a line of another order put in front.

    Most of what comes out is no bijection; a search pays for that with a check, not with a replay.
    """
    kind = draw.random()
    if kind < 0.5 and (found := list(_NUMBER.finditer(source))):
        one = draw.choice(found)
        return _put(source, one, str(draw.choice(_STEPS)(int(one[0]))))
    if kind < 0.65 and (found := list(_OPERATOR.finditer(source))):
        return _put(source, draw.choice(found), f" {draw.choice(('//', '%', '+', '-', '*'))} ")
    if kind < 0.8 and (found := list(_NAME.finditer(source))):
        return _put(source, draw.choice(found), draw.choice(("num_xcds", "num_pids", "num_pid_m", "num_pid_n", "pid")))
    front = draw.choice(
        ("pid = num_pids - 1 - pid\n", f"pid = (pid + {draw.randrange(1, 64)}) % num_pids\n", _chunk(draw))
    )
    return front + source


def _chunk(draw: random.Random) -> str:
    from swizzle_sim.language import family  # noqa: PLC0415

    return family(f"chunked(chunk={2 ** draw.randrange(1, 8)})")


def _put(source: str, found: re.Match, text: str) -> str:
    return source[: found.start()] + text + source[found.end() :]
