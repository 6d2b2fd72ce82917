"""Resources in the forms of a compiled AMD kernel: assembly, and Triton's two intermediate languages.

Tensor instructions in flight are assumed, not measured: a pipelined loop keeps as many steps in flight as it has
stages, each with all loads of its body; a loop that is not pipelined, the loads of one step. A loop counts as pipelined
if pipelining left a copy of one of its loads, known by its place in the source, in front of it or in a further loop
(decision 0022).

Sources: LLVM, "User Guide for AMDGPU Backend", tables "Kernel Descriptor" and "compute_pgm_rsrc1 for GFX6-GFX12"; AMD,
"CDNA 3 Instruction Set Architecture", for the cycles of a wave; LLVM's ``SISchedule.td`` for what has a quarter rate.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache

VGPR_GRANULE = 8  # registers of a block that the kernel descriptor counts, gfx90a and later CDNA
_LOADS = re.compile(
    r"\b(?:tt\.load|tt\.descriptor_load|tt\.descriptor_gather|amdg\.buffer_load(?:_to_local)?"
    r"|ttg\.async_copy_global_to_local|amdg\.async_tdm_copy_global_to_local"
    r"|ttng\.async_tma_copy_global_to_local|ttng\.async_tma_gather)\b"
)
_GLOBAL = re.compile(
    r"\b(?:global|buffer|flat)_load_(?:lds_)?(?:[usi](?:byte|short|8|16)|short|byte|dwordx?\d?|b\d+)\w*"
)
_WIDTHS = {"byte": 1, "8": 1, "short": 2, "16": 2, "dword": 4, "dwordx2": 8, "dwordx3": 12, "dwordx4": 16}
_WIDTHS |= {f"b{bits}": bits // 8 for bits in (32, 64, 96, 128)}
WAVE_CYCLES = 4  # of a SIMD's 16 lanes for a wave of 64
_QUARTER = re.compile(r"v_(?:exp|log|rcp|rsq|sqrt|sin|cos)_|v_mul_(?:lo|hi)_[iu]32")  # at a quarter of the rate
_INSTRUCTION = re.compile(r"^\s+([a-z]\w+)\b(.*)")
_LABEL = re.compile(r"^(\.?[\w.]+):")
_LOOP = re.compile(r"\bscf\.(?:for|while)\b|^\s*\} do \{")
_LOCATION = re.compile(r"\bloc\(.*$")
_QUOTED = re.compile(r'"[^"]*"')
_DEFINED = re.compile(r"^(#loc\d*) = loc\((.*)\)$", re.MULTILINE)
_NAMED = re.compile(r"#loc\d*\b")
_AT = re.compile(r'"[^"]*":\d+:\d+')


def assembly_notes(assembly: str) -> dict[str, int]:
    """Registers and scratch that the hardware allocates, and counts that LLVM prints with the code; 0 for none."""
    keys = {
        "scratch_bytes": r"\.private_segment_fixed_size:\s+(\d+)",
        "vgprs_used": r"\.vgpr_count:\s+(\d+)",
        "agprs_used": r"\.agpr_count:\s+(\d+)",
        "sgprs": r"\.sgpr_count:\s+(\d+)",
        "vgpr_spills": r"\.vgpr_spill_count:\s+(\d+)",
        "sgpr_spills": r"\.sgpr_spill_count:\s+(\d+)",
        "code_bytes": r"; codeLenInByte = (\d+)",
        "llvm_waves_per_simd": r"; Occupancy:\s+(\d+)",
    }
    found = {key: re.search(pattern, assembly) for key, pattern in keys.items()}
    blocks = re.search(r"; VGPRBlocks: (\d+)", assembly)  # as the descriptor has them, one less than there are
    if blocks is None:
        raise ValueError("the assembly does not say how many registers its kernel descriptor allocates")
    counts = {key: int(match[1]) if match else 0 for key, match in found.items()}
    return {"vgprs": (int(blocks[1]) + 1) * VGPR_GRANULE, **counts}


def global_loads(assembly: str) -> list[tuple[int, int]]:
    """Global loads in an AMD assembly: bytes a lane, and how many, widest first."""
    found: Counter[int] = Counter()
    for name in _GLOBAL.findall(assembly):
        kind = re.sub(r"^.*_load_(?:lds_)?[usi]?", "", name).split("_")[0]
        found[_WIDTHS.get(kind, 4)] += 1
    return sorted(found.items(), reverse=True)


def _instructions(assembly: str) -> tuple[list[str], list[tuple[int, int]]]:
    """Instructions of an AMD assembly, and first and end of each loop: from a label to a later branch back to it."""
    places: dict[str, int] = {}
    code: list[str] = []
    loops: list[tuple[int, int]] = []
    for line in assembly.partition(".section\t.AMDGPU")[0].splitlines():
        if label := _LABEL.match(line):
            places[label[1]] = len(code)
        elif found := _INSTRUCTION.match(line):
            code.append(found[1])
            target = places.get(found[2].split(";")[0].strip()) if "branch" in found[1] else None
            loops += [] if target is None else [(target, len(code))]
    return code, loops


def before_loop(assembly: str) -> int:
    """Instructions of an AMD assembly before the first label that a later branch goes back to; all, where none does."""
    code, loops = _instructions(assembly)
    return min((first for first, _ in loops), default=len(code))


def vector_cycles(assembly: str) -> int:
    """Cycles in which a wave's vector instructions keep its SIMD: a turn of the innermost loop with most loads.

    All of the code where no loop loads; 0 where the matrix cores have a part in it.
    """
    code, spans = _instructions(assembly)
    loops = [code[first:end] for first, end in spans]
    if any("mfma" in name for name in code):
        return 0
    loads = [sum(map(bool, map(_GLOBAL.match, body))) for body in loops]
    body = (
        min((len(one), one) for one, n in zip(loops, loads, strict=True) if n == max(loads))[1] if any(loads) else code
    )
    slow = sum(bool(_QUARTER.match(name)) for name in body)
    return WAVE_CYCLES * (sum(name.startswith("v_") for name in body) + 3 * slow)


def loads_per_step(ttir: str, ttgir: str) -> int:
    """Loads in the body of the main loop, without loops inside it; of the straight code where no loop has any.

    That is the loop with most loads, of those that were pipelined if any was.
    """
    return len(_main(ttir, ttgir))


def is_pipelined(ttir: str, ttgir: str) -> bool:
    """Whether software pipelining copied loads out of the main loop."""
    return not _sent_ahead(ttir, ttgir).isdisjoint(_main(ttir, ttgir))


def in_flight(ttir: str, ttgir: str, num_stages: int) -> int:
    """Tensor instructions in flight, at least 1; see the module on what is assumed."""
    steps = max(1, num_stages) if is_pipelined(ttir, ttgir) else 1
    return max(1, steps * loads_per_step(ttir, ttgir))


def _main(ttir: str, ttgir: str) -> list[str]:
    """Places of the loads of the main loop, see `loads_per_step`."""
    straight, *loops = _loads(ttir)
    ahead = _sent_ahead(ttir, ttgir)
    return max(filter(None, loops), key=lambda loads: (not ahead.isdisjoint(loads), len(loads)), default=straight)


def _sent_ahead(ttir: str, ttgir: str) -> set[str]:
    """Places in the source whose loads stand in more loops, or in front of more, than before pipelining.

    Loads without a place are one place, of which more loads are there.
    """
    first, last = (
        Counter(place for loads in _loads(text) for place in [*({*loads} - {""}), *[""] * loads.count("")])
        for text in (ttir, ttgir)
    )
    return {place for place in first if last[place] > first[place]}


@lru_cache(maxsize=8)
def _loads(text: str) -> list[list[str]]:
    """Places in the source of the loads of the straight code, and then of each loop without those inside it."""
    places = {match[1]: match[2] for match in _DEFINED.finditer(text)}
    found: list[list[str]] = [[]]
    stack = found[:]  # of the loads that the code within each brace adds to
    for line in text.splitlines():
        code = _LOCATION.sub("", _QUOTED.sub("", line))
        stack[-1] += [_place(line, places) for _ in _LOADS.findall(code)]
        is_loop = _LOOP.search(code) is not None
        for brace in re.findall(r"[{}]", code):
            if brace == "{":
                found += [[]] * is_loop
                stack.append(found[-1] if is_loop else stack[-1])
            elif len(stack) > 1:
                stack.pop()
    return found


def _place(line: str, places: dict[str, str]) -> str:
    """Files, lines and columns that a load's location comes down to, without the names of variables; "" for none."""
    found = _LOCATION.search(line)
    words = found[0] if found else ""
    for _ in range(len(places)):
        if not _NAMED.search(words):
            break
        words = _NAMED.sub(lambda name: places.get(name[0], ""), words)
    return " ".join(_AT.findall(words))
