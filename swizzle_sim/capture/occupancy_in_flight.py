"""How many tensor instructions of one workgroup are in flight, read off Triton's two intermediate forms.

Assumed, not measured: a pipelined loop keeps as many steps in flight as it has stages, each with all loads of its
body; a loop that is not pipelined, the loads of one step. A loop counts as pipelined if pipelining left copies of its
loads in front of it, which is to say that the later form has more load instructions than the earlier one.
"""

from __future__ import annotations

import re

_LOADS = re.compile(
    r"\b(?:tt\.load|tt\.descriptor_load|tt\.descriptor_gather|amdg\.buffer_load(?:_to_local)?"
    r"|ttg\.async_copy_global_to_local|amdg\.async_tdm_copy_global_to_local)\b"
)
_LOOP = re.compile(r"\bscf\.(?:for|while)\b|^\s*\} do \{")
_LOCATION = re.compile(r"\bloc\(.*$")
_QUOTED = re.compile(r'"[^"]*"')


def loads_per_step(ttir: str) -> int:
    """Loads in the body of the loop that has most, without loops inside it; of the straight code where none has any."""
    stack: list[list[int]] = []  # of [is a loop, loads so far]
    best = straight = 0
    for line in ttir.splitlines():
        code = _LOCATION.sub("", _QUOTED.sub("", line))
        loads = len(_LOADS.findall(code))
        loop = next((entry for entry in reversed(stack) if entry[0]), None)
        if loop is not None:
            loop[1] += loads
            best = max(best, loop[1])
        else:
            straight += loads
        is_loop = _LOOP.search(code) is not None
        for brace in re.findall(r"[{}]", code):
            if brace == "{":
                stack.append([is_loop, 0])
            elif stack:
                stack.pop()
    return best or straight


def is_pipelined(ttir: str, ttgir: str) -> bool:
    """Whether software pipelining copied loads out of a loop."""
    return _count(ttgir) > _count(ttir)


def in_flight(ttir: str, ttgir: str, num_stages: int) -> int:
    """Tensor instructions in flight, at least 1; see the module on what is assumed."""
    steps = max(1, num_stages) if is_pipelined(ttir, ttgir) else 1
    return max(1, steps * loads_per_step(ttir))


def _count(text: str) -> int:
    return sum(len(_LOADS.findall(_LOCATION.sub("", _QUOTED.sub("", line)))) for line in text.splitlines())
