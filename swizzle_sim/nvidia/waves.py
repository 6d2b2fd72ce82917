"""How long a step of a loop takes on an SM by its compiled code alone: its waves, executed an instruction at a time.

Each wave issues in order. An instruction waits for the barriers of loads, exponentials and shuffles that the compiler
names in it, then for the unit that executes it, and the wave goes on after the cycles that the compiler has written
there. A SIMD issues one instruction a cycle, of the wave that can first; of several that can, the last one again, else
the youngest. Loads come after the latency of the L2 and no faster than an SM takes them in; a replay puts its own times
of loads in their place.

    cycles of a step = what a workgroup alone on the SM takes for one - bursts * what a burst of loads takes
                       + what it takes longer on a full SM, beyond the cycles that all need of the busiest unit

The busiest unit serves one workgroup after the other in the replay. A burst is the loads that go out before one of them
is waited for. Shared memory moves 128 B a cycle: operands of a warpgroup's products first, then what waves load and
store, behind the copies that were issued before. Copies hold up no product, but all that is moved counts for the
busiest unit. Of products under way all leave as much as the last one issued.

    cycles ahead = of a workgroup alone, from when its copies are there until the next have gone out: a step whose
                   copies take for ever, less that, and less what the SM takes in

A wait for copies waits for all that went out. Not modelled: tiles that the tensor memory accelerator writes, conflicts
of banks where an address of shared memory is not known, instruction fetches, and branches inside the loop, which count
as not taken.

Sources: latencies of one H200 (`benchmarks/validation/data/machine/h200_instructions.csv`); Huerta et al., "Analyzing
modern NVIDIA GPU cores", arXiv 2503.20481, for which wave issues; NVIDIA, "CUDA C++ Programming Guide", table of
arithmetic throughput, and "Hopper Tuning Guide" for what an SM executes in a cycle.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from swizzle_sim.nvidia.sass import LANES, TILES, Controlled
from xcd_model import Resources, gpu, gpu_names, workgroups_per_cu
from xcd_model.errors import ReplayError

TIMED = ("sm_90a",)  # architectures whose latencies were measured
SIMDS = 4
LATENCY = {"SHFL": 24, "LDS": 23, "LDSM": 23, "LDL": 35, "LDG": 45, "HMMA": 24}  # of LDG the L1's, with its lines there
LATENCY |= dict.fromkeys(("MUFU", "I2F", "F2I", "FENCE"), 17)
OTHERS, BARRIER, READ = 24, 20, 12  # other instructions that set a barrier (assumed), BAR.SYNC, operands (assumed)
L2, FILL_BYTES = 265, 64  # latency of the L2 [cycles], bytes that an SM takes in a cycle
TURNS = 4  # of the loop for each wave; the first is left out
FAR = 1 << 24  # cycles in which all else that is under way ends
SPECIAL = ("MUFU", "POPC", "I2F", "F2I")
SHARED = ("SHFL", "LDS", "STS", "LDL", "STL", "LDG", "STG", "LDSM", "STSM", "LDGSTS", "ATOMS")
INTEGER = ("FSEL", "FMNMX", "FSETP", "ISETP", "LOP3", "IADD3", "SHF", "LEA", "SEL", "PLOP3", "IMNMX", "VIADD", "PRMT",
    "MOV", "P2R", "F2FP", "SGXT", "VIMNMX")  # fmt: skip
FLOATING = ("FMUL", "FADD", "FFMA", "IMAD", "HADD2", "HFMA2", "HMUL2")
CYCLES = {"special": 8, "integer": 2, "floating": 1}  # of a SIMD that has 4, 16 and 32 such lanes
PRODUCT_ROWS, PRODUCT_BYTES = 64, 32  # of a warpgroup's product, along K
SHARED_BYTES = 128  # that shared memory moves in a cycle
PRODUCT_CYCLES = 4  # of 16 x 8 x 16 on the matrix unit of a SIMD
NOTHING = 7
_FROM_REGISTERS = re.compile(r"^\s*R\d+, R\d")
_COLUMNS = re.compile(r"\.64x(\d+)x")
_LEFT = re.compile(r"0x([0-9a-f]+)\s*$")


class Step(NamedTuple):
    """Time of a loop's step on an SM."""

    bursts: int  # times that its loads are waited for, a divisor of their number
    # of a step on an SM full of such workgroups, without bursts of loads and waiting for the busiest unit
    cycles: float
    busy: int  # those of them in which a workgroup needs the SM's busiest unit
    # one workgroup's part of the time in which a full SM does a step of each of its workgroups, without waits for
    # copies; no less than ``busy``
    share: float


@dataclass
class _Wave:
    """Where a wave is: next instruction, cycle from which it may issue, barriers and groups of products."""

    workgroup: int
    at: int
    place: int = 0
    turns: int = 0
    barriers: list[int] = field(default_factory=lambda: [0] * 8)
    groups: list[int] = field(default_factory=lambda: [0])


class _Op(NamedTuple):
    """An instruction as the units see it: cycles of a SIMD's share of each."""

    code: Controlled
    unit: str
    occupies: int
    fills: int  # of what an SM takes in
    matrix: int
    operands: int  # that a product reads from shared memory
    copied: int | None  # of what an SM takes in for a copy, none for other instructions
    awaits_copies: bool
    ends_group: bool
    groups_left: int | None
    is_barrier: bool


def cycles_of(
    loop: Sequence[Controlled], unrolled: int, arch: str, of: Resources, loads_per_step: int
) -> dict[str, Any]:
    """Fields of `xcd_model.Resources` that say how long a loop's code takes, of a kernel with the resources ``of``.

    None of them where there is no loop, the architecture is none of `TIMED`, or no workgroup fits an SM.

    loop, unrolled : the body of the loop, and steps of the source in it; the whole code and 0 where it has no loop
    loads_per_step : of the source; ``of.loads_per_step`` is 0 where the loop is not pipelined
    """
    if not loop or arch not in TIMED:
        return {}
    device = next(one for one in map(gpu, gpu_names()) if one.arch == arch)
    try:
        held = workgroups_per_cu(of, device)
    except ReplayError:  # nothing fits, as whoever replays it is told
        return {}
    waves = -(-of.threads // (device.limits.wave_size * device.limits.simds_per_cu))
    if not unrolled:
        return {"vector_cycles": once_of(loop, waves, held), "vector_loads": loads_per_step}
    loads = unrolled * loads_per_step
    step = step_of(loop, waves, held, loads)
    if of.loads_per_step:
        ahead = ahead_of(loop, waves) if of.after_products else 0.0
        return {"step_cycles": round(step.share / unrolled), "ahead_cycles": round(ahead / unrolled)}
    return {
        "burst_loads": loads // step.bursts,
        "burst_cycles": round(step.cycles / step.bursts),
        "busy_cycles": round(step.busy / step.bursts),
    }


def step_of(loop: Sequence[Controlled], waves: int, workgroups: int, loads: int) -> Step:
    """Time a step of a loop."""
    ops = [_op(one) for one in loop]
    alone = _mean(ops, waves, 1, 0)
    full = alone if workgroups == 1 else _mean(ops, waves, workgroups, int(alone / workgroups))
    bursts, fills = min(loads, max(1, _bursts(loop))), waves * sum(op.fills for op in ops)
    if loads % bursts:
        bursts = 1
    units: Counter[str] = Counter(issue=len(ops), matrix=sum(op.matrix for op in ops))
    for op in ops:
        units[op.unit] += op.occupies
        units["shared"] += op.operands
    busy = waves * max(units.values())
    shares = max(0.0, full - max(alone, workgroups * busy))  # beyond what the busiest unit explains
    return Step(bursts, max(busy, alone + shares - bursts * L2 - fills), busy, max(busy, full / workgroups))


def once_of(code: Sequence[Controlled], waves: int, workgroups: int) -> int:
    """Cycles of code without loops on a full SM, one workgroup's part, with its loads' lines in the L1.

    The compiler spreads loads over such code; what they take beyond the L1 is the replay's.
    """
    ops = [_op(one)._replace(fills=0) for one in code]
    alone = _mean(ops, waves, 1, 0)
    full = alone if workgroups == 1 else _mean(ops, waves, workgroups, int(alone / workgroups))
    return round(full / workgroups)


def ahead_of(loop: Sequence[Controlled], waves: int) -> float:
    """Cycles from when the copies of a step are there until the next arrive without a gap, with nothing else on the SM.

    0 where no copies go out, none are waited for, or waves wait for them apart from each other.
    """
    ops = [_op(one) for one in loop]
    copied = [op.copied for op in ops if op.copied is not None]
    if not copied or not any(op.awaits_copies for op in ops):
        return 0.0
    waited = _mean(ops, waves, 1, 0, FAR) % FAR
    return max(0.0, waited - waves * sum(copied)) if waited < FAR / TURNS else 0.0  # else waves wait apart


def _op(code: Controlled) -> _Op:
    kind, columns = code.kind, _COLUMNS.search(code.name)
    unit, occupies = "none", 0
    for name, kinds in (("special", SPECIAL), ("integer", INTEGER), ("floating", FLOATING)):
        if kind in kinds:
            unit, occupies = name, CYCLES[name]
    words = next((n for part, n in ((".128", 4), (".64", 2), (".M88.4", 4), (".M88.2", 2)) if part in code.name), 1)
    if kind in SHARED:  # one wavefront a cycle for all SIMDs, of up to 128 B
        unit, occupies = "shared", SIMDS * (code.wavefronts or words)
    rows = 0 if _FROM_REGISTERS.search(code.operands) else PRODUCT_ROWS
    operands = (rows + int(columns[1])) * PRODUCT_BYTES // SHARED_BYTES if columns else 0
    matrix = max(int(columns[1]) // 2, operands) if columns else PRODUCT_CYCLES if kind == "HMMA" else 0
    left = _LEFT.search(code.operands) if code.name.startswith("WARPGROUP.DEPBAR") else None
    taken_in = SIMDS * words * 4 * LANES // FILL_BYTES
    return _Op(
        code, unit, occupies, taken_in if kind == "LDG" else 0, matrix, operands,
        taken_in if kind == "LDGSTS" else 0 if kind in TILES else None,
        (kind == "DEPBAR" and code.operands.strip().startswith("SB0")) or code.name.startswith("SYNCS.PHASECHK"),
        "gsb0" in code.operands and bool(columns), int(left[1], 16) if left else None, kind == "BAR",
    )  # fmt: skip


def _bursts(loop: Sequence[Controlled]) -> int:
    """Times that loads go out after others of the same turn were waited for, and the first time."""
    bursts, awaited, pending = 0, True, set[int]()
    for one in loop:
        if pending.intersection(one.waits):
            awaited = True
            pending.difference_update(one.waits)
        if one.kind == "LDG":
            bursts += awaited
            awaited = False
            pending.add(one.sets)
    return bursts


def _mean(ops: Sequence[_Op], waves: int, workgroups: int, apart: int, far: int = 0) -> float:
    """Cycles in which each wave of a SIMD does a step, in the mean; their workgroups begin so far apart.

    Copies take ``far`` cycles and what the SM takes in; if 0, nobody waits for them.
    """
    simd = [_Wave(one, one * apart) for one in range(workgroups) for _ in range(waves)]
    free: Counter[str] = Counter(copies=far)  # the first turn waits, too
    came: dict[tuple[int, int, int], dict[int, int]] = {}
    ended: list[int] = []  # cycles of all waves' steps
    last = -1
    while len(ended) < TURNS * len(simd):
        ready = [
            (at, me != last, -me)
            for me, wave in enumerate(simd)
            if (at := _ready(ops[wave.place], wave, free, came, me, waves)) is not None
        ]
        at, _, me = min(ready)
        last = -me
        wave = simd[last]
        op = ops[wave.place]
        _issue(op, wave, at, free)
        if far and op.copied is not None:
            free["copies"] = max(at + far, free["copies"]) + op.copied
        wave.place += 1
        if wave.place == len(ops):
            wave.place, wave.turns = 0, wave.turns + 1
            ended.append(wave.at)
    ended.sort()
    return (ended[-1] - ended[len(simd) - 1]) / (TURNS - 1)


def _ready(
    op: _Op, wave: _Wave, free: Counter[str], came: dict[tuple[int, int, int], dict[int, int]], me: int, waves: int
) -> int | None:
    """Cycle in which a wave can issue, None while it waits for others of its workgroup."""
    at = max([wave.at, *(wave.barriers[one] for one in op.code.waits)])
    if op.groups_left is not None and len(wave.groups) > op.groups_left:
        at = max(at, wave.groups[-1 - op.groups_left])
    if op.is_barrier:
        here = came.setdefault((wave.workgroup, wave.turns, wave.place), {})
        here[me] = at
        if len(here) < waves:
            return None
        at = max(here.values()) + BARRIER
    if op.unit in CYCLES:
        at = max(at, free[op.unit])
    if op.awaits_copies:
        at = max(at, free["copies"])
    return max(at, free["issue"])


def _issue(op: _Op, wave: _Wave, at: int, free: Counter[str]) -> None:
    """Issue a wave's next instruction in a cycle."""
    code, done = op.code, at
    free["issue"] = at + 1
    if op.unit == "shared":  # waits in a queue, not its wave
        begins = max(at, free["shared"])
        is_copy = code.kind == "LDGSTS"  # which writes when it comes
        free["shared"] = begins + op.occupies if is_copy else _between_operands(free, begins, op.occupies)
        done = free["shared"] - 1
    elif op.occupies:
        free[op.unit] = at + op.occupies
    if op.matrix:
        free["matrix"] = max(at, free["matrix"]) + op.matrix
        free["product"], free["operands"] = op.matrix, op.operands
        if op.ends_group:
            wave.groups.append(free["matrix"])
    if op.fills:
        free["fill"] = max(at + L2, free["fill"]) + op.fills
    if code.sets != NOTHING:
        there = free["fill"] if op.fills else done + LATENCY.get(code.kind, OTHERS)
        wave.barriers[code.sets] = max(wave.barriers[code.sets], there)
    if code.reads != NOTHING:
        wave.barriers[code.reads] = max(wave.barriers[code.reads], done + READ)
    wave.at = at + max(1, code.stall)


def _between_operands(free: Counter[str], begins: int, cycles: int) -> int:
    """When an access to shared memory is done that gets the cycles in which no product reads its operands."""
    left, product, operands = max(0, free["matrix"] - begins), free["product"], free["operands"]
    if left and cycles * product <= left * (product - operands):
        return begins - -cycles * product // (product - operands)
    return begins + cycles - -left * operands // max(1, product)
