"""What a candidate's names are called in another language, and which of them become arguments."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator

from swizzle_sim.swizzle.form import Assign, Form, If, Stmt
from swizzle_sim.swizzle.names import COORDINATES, COUNTS
from swizzle_sim.swizzle.reads import names_read
from swizzle_sim.swizzle.rules import RESERVED
from xcd_model.errors import LanguageError

_AXIS_CALL = re.compile(r"(program_id|num_programs)\(([0-2])\)")
_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_XCDS = ("num_xcds", "NUM_XCDS")


def arguments(form: Form) -> tuple[str, ...]:
    """Inputs of a form in the order in which emitted functions take them.

    What differs between workgroups comes first, then counts, then the kernel's sizes, the number of XCDs last.
    """

    def place(name: str) -> tuple[int, str]:
        groups = (name in COORDINATES, name in COUNTS and name not in _XCDS, name not in _XCDS)
        return groups.index(True) if any(groups) else len(groups), name

    return tuple(sorted(form.inputs, key=place))


def is_axis_call(name: str) -> bool:
    """Whether a name stands for ``tl.program_id(k)`` or ``tl.num_programs(k)``."""
    return _AXIS_CALL.fullmatch(name) is not None


def axis_name(name: str) -> str:
    """``program_id(1)`` as an identifier, ``program_id_1``; any other name as it is."""
    return _AXIS_CALL.sub(r"\1_\2", name)


def respelled(form: Form, taken: Collection[str]) -> dict[str, str]:
    """New spelling of each name that is no free identifier elsewhere: axis calls, and names in ``taken``."""
    names = used(form)
    busy, spelled = {*names, *taken}, {}
    for name in sorted(names):
        fresh = axis_name(name)
        if fresh == name and name not in taken:
            continue
        while fresh in busy:
            fresh += "_"
        busy.add(fresh)
        spelled[name] = fresh
    return spelled


def check_function_name(name: str, taken: Iterable[str]) -> None:
    """Refuse a function name that is no identifier, or a word of the target language.

    Raises
    ------
    LanguageError
        With code ``name``.
    """
    if not _IDENTIFIER.fullmatch(name) or name in RESERVED or name in set(taken):
        raise LanguageError(f"{name[:60]!r} cannot name an emitted function: write letters, digits and _", code="name")


def used(form: Form) -> set[str]:
    """Every name in a candidate."""
    return {*_mentioned(form.body), *form.results, *form.inputs}


def _mentioned(body: tuple[Stmt, ...]) -> Iterator[str]:
    for stmt in body:
        if isinstance(stmt, Assign):
            yield stmt.target
            yield from names_read(stmt.value)
        elif isinstance(stmt, If):
            yield from names_read(stmt.condition)
            yield from (*_mentioned(stmt.body), *_mentioned(stmt.orelse))
        else:
            yield stmt.var
            yield from (*names_read(stmt.start), *names_read(stmt.stop), *_mentioned(stmt.body))
