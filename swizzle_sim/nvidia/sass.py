"""SASS, NVIDIA's compiled code: its resources, its loops, and where the lanes of a wave meet in shared memory.

It is read with the tools that Triton brings, ``cuobjdump`` and ``nvdisasm``. `facts_of` is what the compiling process
asks for.

Integer instructions are executed for the 32 lanes of a workgroup's first wave, in the order of the text, as far as
their operands are known: thread numbers, immediates and what is computed from them; an argument, a loaded value or a
chosen one is not. An address that is not known counts as free of conflicts.

    wavefronts of an access = sum over groups of lanes that move 128 bytes, of the words they need of their busiest bank

Sources: NVIDIA, "CUDA Binary Utilities": resource usage of a cubin, and the instructions of Hopper; "CUDA C++
Programming Guide", shared memory of compute capability 5.x and later: 32 banks of 4 bytes. Jia et al., "Dissecting the
NVIDIA Volta GPU architecture via microbenchmarking", arXiv 1804.06826, section 2.1: the bits by which the compiler
controls how a wave goes on.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from operator import or_
from typing import Any, NamedTuple

LANES, BANKS, WORD_BYTES, WORD = 32, 32, 4, 2**32 - 1  # of shared memory; WORD masks 32 bits
Values = tuple[int, ...]
_REGISTER = re.compile(r"^([-~|]?)(U?R)(\d+|Z)\|?(?:\.\w+)*$")
_IMMEDIATE = re.compile(r"^-?0x[0-9a-f]+$")
_PREDICATE = re.compile(r"^!?U?P(?:\d|T)$")
_ADDRESS = re.compile(r"\[([^\]]*)\]")
_WRITTEN = {"HGMMA": 128, "HMMA": 4, "LDSM": 4, "CS2R": 2}  # registers from the first
_WIDER = {"128": 4, "64": 2, "WIDE": 2}
_USAGE = re.compile(r"\bREG:(\d+) STACK:(\d+)")
_INSTRUCTION = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)([^;]*);")
_LABEL = re.compile(r"^\.?([\w.$]+):")
_HALF = re.compile(r"/\* (0x[0-9a-f]{16}) \*/\s*$")  # half of an instruction, the second one on a line of its own
_PTX_LABEL, _PTX_JUMP = re.compile(r"^(\$\w+):"), re.compile(r"\bbra(?:\.uni)?\s+(\$\w+);")
_CONTROL_AT, _BARRIERS = 41, 6  # bit of the second half; scoreboard barriers of a wave
_LOADS = ("LDG", "LDGSTS")
TILES = ("UTMALDG", "UBLKCP")  # the tensor memory accelerator: one instruction brings a tile
_PRODUCTS = ("HGMMA", "IGMMA", "QGMMA")
_COPIES = ("LDGSTS", *TILES)
_OF_TILES = ("STG", "UTMASTG", "I2F")  # the last begins a division of integers
_NONE_LEFT = re.compile(r"\bgsb\d+, 0x0\b")
_WIDTHS = {"128": 16, "64": 8, "U16": 2, "S16": 2, "U8": 1, "S8": 1}


def facts_of(words: str, sass: str, ptx: str) -> dict[str, Any]:
    """What a compiled kernel says of itself: of ``cuobjdump``'s ``words``, its disassembly with words, and its PTX."""
    before, curves = before_loop(sass)
    loop, once = loading_loop(sass), straight_code(sass)
    return {
        **usage(words),
        **main_loop(sass),
        "loop": loop or once,
        "unrolled": 0 if once else unrolled(ptx, loop),
        "loads": global_loads(sass),
        "instructions_before_loop": before,
        "instructions_in_curves": curves,
        "code_bytes": code_bytes(sass),
    }


def usage(words: str) -> dict[str, int]:
    """Registers a thread and spilled words, of what ``cuobjdump --dump-resource-usage`` prints."""
    found = _USAGE.search(words)
    if found is None:
        raise ValueError(f"cuobjdump prints no resource usage: {words[-200:]!r}")
    registers, stack_bytes = int(found[1]), int(found[2])
    return {
        "vgprs": registers,
        "vgprs_used": registers,
        "scratch_bytes": stack_bytes,
        "vgpr_spills": -(-stack_bytes // WORD_BYTES),
    }


def global_loads(sass: str) -> list[tuple[int, int]]:
    """Global loads in a disassembly: bytes a lane, 0 for a tile by TMA, and how many, widest first."""
    found: Counter[int] = Counter()
    for _, name, _ in _instructions(sass):
        kind, *parts = name.split(".")
        if kind in _LOADS:
            found[next((_WIDTHS[part] for part in parts if part in _WIDTHS), WORD_BYTES)] += 1
        elif kind in TILES:
            found[0] += 1
    return sorted(found.items(), reverse=True)


def before_loop(sass: str) -> tuple[int, int]:
    """Instructions before the first loop with loads or products, or all; and how many of them are in other loops."""
    code, loops = _instructions(sass), _loops(sass)
    stop = min((begin for begin, end in loops if any(map(_works, code[begin : end + 1]))), default=len(code))
    return stop, len({at for begin, end in loops if end < stop for at in range(begin, end + 1)})


def _works(instruction: tuple[str, str, str]) -> bool:
    return instruction[1].split(".")[0] in (*_LOADS, *TILES, *_PRODUCTS)


def main_loop(sass: str) -> dict[str, int | bool]:
    """What a step of the innermost loop with products and copies executes."""
    every, seldom = _instructions(sass), _not_every_step(sass)
    for begin, end in sorted(_loops(sass), key=lambda loop: loop[1] - loop[0]):
        code = [every[at] for at in range(begin, end + 1) if at not in seldom]
        kinds = [name.split(".")[0] for _, name, _ in code]
        products = [at for at, kind in enumerate(kinds) if kind in _PRODUCTS]
        copies = [at for at, kind in enumerate(kinds) if kind in _COPIES]
        if products and copies:
            n, last = len(kinds), products[-1]
            between = min((at - last) % n for at in copies)  # round the loop: the first comes behind the last
            waits = (code[(last + i) % n] for i in range(1, between))
            awaited = any(name.startswith("WARPGROUP.DEPBAR") and _NONE_LEFT.search(rest) for _, name, rest in waits)
            past = all(code[at][1].startswith(TILES) or ".BYPASS" in code[at][1] for at in copies)
            executed = n - len(products) - len(copies)
            return {"step_instructions": executed, "after_products": awaited, "past_l1": past}
    return {"step_instructions": 0, "after_products": False, "past_l1": False}


class Controlled(NamedTuple):
    """One instruction, and how its wave goes on."""

    name: str
    operands: str
    stall: int  # cycles until the wave's next instruction
    sets: int  # barrier that is open until the result is there, or until the operands are read; 7 for none
    reads: int
    waits: tuple[int, ...]  # barriers that are waited for before it
    wavefronts: int = 0  # of an access to shared memory, with its conflicts of banks; 0 where nobody knows

    @property
    def kind(self) -> str:
        """Name without its variants."""
        return self.name.split(".")[0]


def loading_loop(sass: str) -> list[Controlled]:
    """Body of the innermost loop with most loads or copies, of a disassembly with words; empty where none has any.

    Loops with copies into shared memory come first, which a pipelined loop has, and of those with as many loads one
    with products.
    """
    code, seldom = _controlled(sass), _not_every_step(sass)
    bodies = [[code[at] for at in range(begin, end + 1) if at not in seldom] for begin, end in _innermost(_loops(sass))]
    loads = [sum(one.kind in (*_LOADS, *TILES) for one in body) for body in bodies]
    ranks = [
        (any(one.kind in _COPIES for one in body), n, any(one.kind in _PRODUCTS for one in body))
        for n, body in zip(loads, bodies, strict=True)
    ]
    return bodies[ranks.index(max(ranks))] if any(loads) else []


def straight_code(sass: str) -> list[Controlled]:
    """Whole code of a kernel without loops and without products, which a workgroup runs through once; else empty.

    As a kernel whose loops are all unrolled, a convolution over taps or one that adds two tensors.
    """
    code = [one for one in _controlled(sass) if one.kind != "NOP"]
    return [] if _loops(sass) or any(one.kind in (*_PRODUCTS, "HMMA") for one in code) else code


def unrolled(ptx: str, loop: list[Controlled]) -> int:
    """Steps of the source in one turn of a `loading_loop`: its loads over those of the same loop in PTX; 1 if unknown.

    The assembler unrolls what it finds in PTX; the compiler before it is told not to.
    """
    lines = ptx.splitlines()
    places = {label[1]: at for at, line in enumerate(lines) if (label := _PTX_LABEL.match(line))}
    jumps = ((at, places.get(jump[1], at)) for at, line in enumerate(lines) if (jump := _PTX_JUMP.search(line)))
    bodies = _innermost([(begin, end) for end, begin in jumps if begin < end])
    loads = max((sum("ld.global" in line for line in lines[begin:end]) for begin, end in bodies), default=0)
    mine = sum(one.kind == "LDG" for one in loop)
    return mine // loads if loads and mine and mine % loads == 0 else 1


def _innermost(loops: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Those of the places of loops that hold no other."""
    return [
        one for one in loops if not any(one != other and one[0] <= other[0] and other[1] <= one[1] for other in loops)
    ]


def _controlled(sass: str) -> list[Controlled]:
    lines = [line for line in sass.splitlines() if _INSTRUCTION.match(line)]
    words = [int(word[1], 16) for line in sass.splitlines() if (word := _HALF.search(line))]
    found = _instructions(sass)
    banks = wavefronts((name, operands, "@" in line) for (_, name, operands), line in zip(found, lines, strict=True))
    code = []
    for (_, name, operands), second, met in zip(found, words[1::2], banks, strict=True):
        bits = second >> _CONTROL_AT
        waits = tuple(barrier for barrier in range(_BARRIERS) if bits >> 11 + barrier & 1)
        code.append(Controlled(name, operands, bits & 15, bits >> 5 & 7, bits >> 8 & 7, waits, met or 0))
    return code


def code_bytes(sass: str) -> int:
    """Length of the code: 16 bytes an instruction."""
    return 16 * len(_instructions(sass))


def _not_every_step(sass: str) -> set[int]:
    """Places in loops over products or copies of what begins or ends a tile, which a branch jumps over in other steps.

    Of a loop over tiles that the compiler made one with the loop over steps: divisions of integers, with which a tile
    is worked out, or stores to global memory, with neither a product nor a copy.
    """
    kinds = [name.split(".")[0] for _, name, _ in _instructions(sass)]
    steps, found = {*_PRODUCTS, *_COPIES}, set()
    loops = [(begin, end) for begin, end in _loops(sass) if steps & set(kinds[begin : end + 1])]
    for at, to in _branches(sass):
        jumped = set(kinds[at + 1 : to])
        if any(begin <= at and to <= end for begin, end in loops) and jumped & set(_OF_TILES) and not jumped & steps:
            found |= set(range(at + 1, to))
    return found


def _loops(sass: str) -> list[tuple[int, int]]:
    """Places of the first and last instruction between a label and a later branch back to it."""
    return [(to, at) for at, to in _branches(sass) if to < at]  # the branch to itself behind the end is padding


def _branches(sass: str) -> list[tuple[int, int]]:
    """Places of branches and of what they jump to."""
    places: dict[str, int] = {}
    jumps, count = [], 0
    for line in sass.splitlines():
        if label := _LABEL.match(line):
            places[label[1].lstrip(".")] = count
        elif instruction := _INSTRUCTION.match(line):
            target = re.search(r"`\(\.?([\w.$]+)\)", instruction[3]) if instruction[2].startswith("BRA") else None
            if target:
                jumps.append((count, target[1]))
            count += 1
    return [(at, places[to]) for at, to in jumps if to in places]


def _instructions(sass: str) -> list[tuple[str, str, str]]:
    return [found.groups() for line in sass.splitlines() if (found := _INSTRUCTION.match(line))]  # type: ignore[misc]


def wavefronts(code: Iterable[tuple[str, str, bool]]) -> list[int | None]:
    """Wavefronts of each access to shared memory, of names, operands, and whether a predicate may skip them."""
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
