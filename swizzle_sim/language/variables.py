"""Variables of a form: their spelling in a target language, the emitted arguments, and where they must exist.

Python creates variables on the way, C++ and Triton need them beforehand, so emitters depend on which are live.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from swizzle_sim.language.ir import (
    COORDINATES,
    COUNTS,
    Assign,
    For,
    Form,
    If,
    Stmt,
    names_in,
    names_read,
    names_set,
    statements,
)
from swizzle_sim.language.rules import RESERVED
from xcd_model.errors import LanguageError

_AXIS_CALL = re.compile(r"(program_id|num_programs)\(([0-2])\)")
_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
XCDS = ("num_xcds", "NUMXCDS")


def arguments(form: Form) -> tuple[str, ...]:
    """Inputs of a form in the order in which emitted functions take them.

    Coordinates come first, then counts, then the kernel's sizes, the XCD count last.
    """

    def place(name: str) -> tuple[int, str]:
        groups = (name in COORDINATES, name in COUNTS and name not in XCDS, name not in XCDS)
        return groups.index(True) if any(groups) else len(groups), name

    return tuple(sorted(form.inputs, key=place))


def is_axis_call(name: str) -> bool:
    """Whether a name is ``tl.program_id(k)`` or ``tl.num_programs(k)``."""
    return _AXIS_CALL.fullmatch(name) is not None


def respelled(form: Form, taken: Collection[str]) -> dict[str, str]:
    """New spelling of each name that is no free identifier elsewhere: axis calls, and names in ``taken``."""
    names = used(form)
    busy, spelled = {*names, *taken}, {}
    for name in sorted(names):
        fresh = _AXIS_CALL.sub(r"\1_\2", name)  # program_id(1) as an identifier, program_id_1
        if fresh == name and name not in taken:
            continue
        while fresh in busy:
            fresh += "_"
        busy.add(fresh)
        spelled[name] = fresh
    return spelled


def check_function_name(name: str, taken: Iterable[str]) -> None:
    """Refuse a function name that is no identifier, or a word of the target language."""
    if not _IDENTIFIER.fullmatch(name) or name in RESERVED or name in set(taken):
        raise LanguageError(f"{name[:60]!r} cannot name an emitted function: write letters, digits and _", code="name")


def used(form: Form) -> set[str]:
    """Every name in a candidate."""
    return names_in(form.body) | names_set(form.body) | {*form.results, *form.inputs}


def live_before(body: tuple[Stmt, ...], live: Collection[str]) -> set[str]:
    """Names whose value at the start of a block may be read, in it or (``live``) after it."""
    reads, sets = _reads_and_sets(body)
    return reads | (set(live) - sets)


def live_after_each(body: tuple[Stmt, ...], live: Collection[str]) -> list[set[str]]:
    """Names whose value after each statement of a block may be read; ``live`` are those read after the block."""
    after = [set(live)]
    for stmt in reversed(body[1:]):
        reads, sets = _reads_and_sets((stmt,))
        after.append(reads | (after[-1] - sets))
    return after[::-1]


def _reads_and_sets(body: tuple[Stmt, ...]) -> tuple[set[str], set[str]]:
    """Names that a block reads before it sets them, and those that it sets on every path.

    Neither depends on what follows, so one walk is enough: a value that an earlier iteration of a loop left adds no
    name to those that the body reads first.
    """
    reads: set[str] = set()
    sets: set[str] = set()
    for stmt in body:
        if isinstance(stmt, Assign):
            first, always = set(names_read(stmt.value)), {stmt.target}
        elif isinstance(stmt, If):
            then, other = _reads_and_sets(stmt.body), _reads_and_sets(stmt.orelse)
            first, always = {*names_read(stmt.condition), *then[0], *other[0]}, then[1] & other[1]
        else:  # may run zero times, so it sets nothing on every path
            inside = _reads_and_sets(stmt.body)[0] - {stmt.var}
            first, always = {*names_read(stmt.start), *names_read(stmt.stop), *inside}, set()
        reads |= first - sets
        sets |= always
    return reads, sets


def live_inside(loop: For, live_after: Collection[str]) -> set[str]:
    """Names whose value at the end of a loop's body may be read: after the loop or in the next iteration."""
    return set(live_after) | live_before(loop.body, live_after)


def assigned(body: Iterable[Stmt]) -> set[str]:
    """Names that a block assigns at any depth, without loop variables."""
    return {stmt.target for stmt in statements(body) if isinstance(stmt, Assign)}
