"""`estimated`: what a configuration may occupy and take, from the compiled ones of the same kernel.

    fact = that of the nearest compiled one * product over blocks and stages of (value / its value) ^ exponent

Distance is in octaves. Exponents are fitted to what was compiled, in least squares, and pulled towards what arithmetic
says: a step's work grows with each side of a block, registers and LDS with the root of it, LDS with stages. Nothing is
taken from other warps, as the matrix instruction may be another there. Where more workgroups fit a CU, its cycles are
the fewest that these can give: all of them wait at once, and no longer. An estimate decides what is worth a compile,
and no point of an answer is made of one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np

from xcd_model import Gpu, Resources, workgroups_per_cu
from xcd_model.errors import ReplayError

WORK = ("step_cycles", "ahead_cycles", "burst_cycles", "busy_cycles", "vector_cycles", "step_instructions")
FACTS = ("vgprs", "lds_bytes", "code_bytes", *WORK)
OF_FULL_CU = ("step_cycles", "burst_cycles")
FAR = 2.0  # octaves of blocks from which nothing is estimated
PULL = 1.0  # of the prior, in compiled configurations an octave away
Compiled = Sequence[tuple[Mapping[str, int], Resources]]


def estimated(values: Mapping[str, int], blocks: Sequence[str], gpu: Gpu, compiled: Compiled) -> Resources | None:
    """Resources of a configuration; None where none near it is compiled that is pipelined as it may be."""
    names = [*blocks, "num_stages"]
    alike = [
        (at, found)
        for at, found in compiled
        if (at["num_stages"] > 1) == (values["num_stages"] > 1)
        and all(at[name] == values[name] for name in values if name not in names and "GROUP" not in name)
    ]
    if not alike:
        return None
    octaves = np.array([[math.log2(at[name] / values[name]) for name in names] for at, _ in alike])
    place = int(np.abs(octaves).sum(axis=1).argmin())
    if np.abs(octaves[place, :-1]).sum() > FAR:
        return None
    near = alike[place][1]
    away, made = octaves - octaves[place], {"threads": near.threads}
    for fact in FACTS:
        if known := getattr(near, fact):
            grows = np.array([_grows(fact, name, blocks) for name in names])
            ratios = np.array([math.log2(max(1, getattr(one, fact)) / known) for _, one in alike])
            has = np.array([getattr(one, fact) > 0 for _, one in alike])
            rows, pull = away[has], PULL * np.eye(len(names))
            exponents = np.linalg.solve(rows.T @ rows + pull, rows.T @ ratios[has] + pull @ grows)
            made[fact] = round(known * 2 ** float(-octaves[place] @ exponents))
    if near.loads_per_step:
        made["instructions_in_flight"] = near.loads_per_step * values["num_stages"]
    found = replace(near, **made, source=f"estimated from {near.source}")  # type: ignore[arg-type]
    with suppress(ReplayError):  # what does not fit has no cycles to correct
        more = max(1.0, workgroups_per_cu(found, gpu) / workgroups_per_cu(near, gpu))
        found = replace(found, **{fact: round(getattr(found, fact) / more) for fact in OF_FULL_CU})
    return found


def _grows(fact: str, name: str, blocks: Sequence[str]) -> float:
    """Exponent that arithmetic says."""
    if name in blocks:
        return 1.0 if fact in WORK else 0.5
    return 0.9 * (fact == "lds_bytes")
