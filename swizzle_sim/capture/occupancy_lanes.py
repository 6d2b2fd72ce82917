"""On how many banks of shared memory the lanes of a wave meet, from the arithmetic of their addresses in SASS.

Integer instructions are executed for the 32 lanes of a workgroup's first wave, in the order of the text, as far as
their operands are known: thread numbers, immediates and what is computed from them; an argument, a loaded value or a
chosen one is not. An address that is not known counts as free of conflicts.

    wavefronts of an access = sum over groups of lanes that move 128 bytes, of the words they need of their busiest bank

Source: NVIDIA, "CUDA C++ Programming Guide", shared memory of compute capability 5.x and later: 32 banks of 4 bytes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from operator import or_

LANES, BANKS, WORD_BYTES, WORD = 32, 32, 4, 2**32 - 1
Values = tuple[int, ...]
_REGISTER = re.compile(r"^([-~|]?)(U?R)(\d+|Z)\|?(?:\.\w+)*$")
_IMMEDIATE = re.compile(r"^-?0x[0-9a-f]+$")
_PREDICATE = re.compile(r"^!?U?P(?:\d|T)$")
_ADDRESS = re.compile(r"\[([^\]]*)\]")
_WRITTEN = {"HGMMA": 128, "HMMA": 4, "LDSM": 4, "CS2R": 2}  # registers from the first
_WIDER = {"128": 4, "64": 2, "WIDE": 2}


def wavefronts(code: Iterable[tuple[str, str, bool]]) -> list[int | None]:
    """Wavefronts of each access to shared memory.

    Parameters
    ----------
    code : iterable of (str, str, bool)
        Name, operands, and whether a predicate may skip it, of each instruction.

    Returns
    -------
    found : list of int or None
        None for other instructions, and where the address is not known.
    """
    known: dict[str, Values | None] = {}
    found: list[int | None] = []
    for name, operands, skipped in code:
        kind, given = name.split(".")[0], [one.strip() for one in operands.split(",")]
        found.append(_of_access(known, name, operands) if kind in ("LDS", "STS") else None)
        if kind.startswith(("ST", "BAR", "BRA", "EXIT")):
            continue
        target = _REGISTER.match(given[0])
        if target is None or target[3] == "Z":
            continue
        result = None if skipped else _result(known, name, given[1:])
        count = _WRITTEN.get(kind) or max(_WIDER.get(part, 1) for part in name.split("."))
        for at in range(int(target[3]), int(target[3]) + count):
            known[f"{target[2]}{at}"] = result if kind == "CS2R" or at == int(target[3]) else None
    return found


def words_of_busiest(addresses: Sequence[int], width: int) -> int:
    """Wavefronts of an access of so many bytes a lane at these addresses."""
    each, count = LANES * WORD_BYTES // width, 0
    for first in range(0, len(addresses), each):
        banks: dict[int, set[int]] = {}
        for address in addresses[first : first + each]:
            for word in range(address // WORD_BYTES, (address + width - 1) // WORD_BYTES + 1):
                banks.setdefault(word % BANKS, set()).add(word)
        count += max(map(len, banks.values()))
    return count


def _of_access(known: dict[str, Values | None], name: str, operands: str) -> int | None:
    inside = _ADDRESS.search(operands)
    if inside is None:
        return None
    parts = [_value(known, one) for one in inside[1].split("+")]
    if any(one is None for one in parts):
        return None
    width = next((bytes_ for part, bytes_ in ((".128", 16), (".64", 8)) if part in name), WORD_BYTES)
    return words_of_busiest([sum(lane) & WORD for lane in zip(*[one for one in parts if one], strict=True)], width)


def _value(known: dict[str, Values | None], text: str) -> Values | None:
    if _IMMEDIATE.match(text):
        return (int(text, 16),) * LANES
    register = _REGISTER.match(text)
    if register is None:
        return None
    found = (0,) * LANES if register[3] == "Z" else known.get(f"{register[2]}{register[3]}")
    if found is None or register[1] == "|":
        return None
    sign = {"": lambda x: x, "-": lambda x: -x, "~": lambda x: ~x}[register[1]]
    return tuple(sign(one) for one in found)


def _result(known: dict[str, Values | None], name: str, given: Sequence[str]) -> Values | None:
    """What an instruction computes for each lane, None where that is not known."""
    if given[-1:] == ["SR_TID.X"]:
        return tuple(range(LANES))
    if given[-1:] == ["SR_CgaCtaId"] or name == "CS2R":
        return (0,) * LANES if given[-1] in ("SR_CgaCtaId", "SRZ") else None
    rule = _rule(name)
    if rule is None:
        return None
    operands = [_value(known, one) for one in given if not _PREDICATE.match(one)]
    if not operands or any(one is None for one in operands):
        return None
    try:
        return tuple(rule(*lane) & WORD for lane in zip(*[one for one in operands if one], strict=True))
    except TypeError:  # other operands than the usual ones
        return None


def _rule(name: str) -> Callable[..., int] | None:
    kind, *variants = name.removeprefix("U").split(".")
    if kind == "SHF":
        if "L" in variants and "HI" not in variants:
            return lambda low, by, high: low << (by & 31)
        return (lambda low, by, high: (high & WORD) >> (by & 31)) if {"R", "U32", "HI"} <= set(variants) else None
    if kind == "SGXT":
        return (lambda value, bits: value & ((1 << bits) - 1)) if "U32" in variants else None
    if {"X", "HI", "WIDE"} & set(variants):
        return None
    return _RULES.get(kind)


def _lop3(a: int, b: int, c: int, table: int) -> int:
    """Bit by bit what the table has at place 4a + 2b + c."""
    sides = [(x & WORD, ~x & WORD) for x in (a, b, c)]
    places = (sides[0][not at & 4] & sides[1][not at & 2] & sides[2][not at & 1] for at in range(8) if table >> at & 1)
    return reduce(or_, places, 0)


_RULES: dict[str, Callable[..., int]] = {
    "MOV": lambda a: a,
    "R2UR": lambda a: a,
    "VIADD": lambda a, b: a + b,
    "IADD3": lambda a, b, c: a + b + c,
    "IMAD": lambda a, b, c: a * b + c,
    "LEA": lambda a, b, by: (a << (by & 31)) + b,
    "LOP3": _lop3,
}
