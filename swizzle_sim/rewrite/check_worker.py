"""Runs a kernel and its rewritten form in Triton's interpreter and compares them; a process of its own.

Both run on the same memory, so that not only outputs but the addresses each program touches can be compared: program
``p`` of the rewritten kernel must do exactly what program ``order[p]`` of the original does. A case without an
``order`` is an instance with other constants: of it outputs alone are compared, within rounding.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from swizzle_sim.capture.claims import TileClaims
from swizzle_sim.capture.interpret import Interpreter
from swizzle_sim.capture.language import Language
from swizzle_sim.capture.loaded_kernel import LoadedKernel
from swizzle_sim.capture.memory import AddressSpace, laid_out
from swizzle_sim.workload.launch import Array, Launch
from xcd_model.errors import CaptureError

# share of a tensor's largest item within which sums in another order stay, by type; a race goes beyond it
ROUNDING = {"bf16": 1.6e-2, "fp16": 2e-3, "fp32": 2e-5, "fp64": 1e-12}
# the same where tiles of another size add up: eight steps of the type at its largest value, and 64 of fp32
ADDED_ANEW = {
    name: 8 * 2.0**-bits + 64 * 2.0**-23 for name, bits in (("bf16", 7), ("fp16", 10), ("fp32", 23), ("fp64", 52))
}
POISONS = (0xFF, 0xA5)  # the first is a NaN in every floating-point type
Memory = dict[int, np.ndarray]  # items by tensor
Done = dict[int, list[str]]  # digests of what each program did, in program order


class Different(Exception):
    """The rewritten kernel does not do what the original does."""


class NotRun(Exception):
    """The original cannot run at these sizes."""


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Run every case of the request: of each kind the first that the original runs at, and why not those before it."""
    language = Language()
    found: list[dict[str, Any]] = []
    done: set[str] = set()
    try:
        for case in request["cases"]:
            compare = _compare if "order" in case else _compare_instance
            try:
                found.append({"not_run": "not needed"} if case["kind"] in done else compare(language, case))
                done.add(case["kind"])
            except NotRun as error:
                found.append({"not_run": str(error)})
            except Different as error:
                if "order" in case:
                    return {"different": str(error)}
                found.append({"different": str(error)})
    except Exception as error:  # a kernel's file raises what it likes: the caller gets its name and words
        return {"error": str(error) if isinstance(error, CaptureError) else f"{type(error).__name__}: {error}"}
    return {"cases": found}


class Watched(Interpreter):
    """Interpreter that notes what each program does with memory, in place of the lines that it touches."""

    def __init__(self, kernel: LoadedKernel, memory: Mapping[int, np.ndarray]):
        super().__init__(kernel, 1, memory, TileClaims(0))
        self.done: Done = {}

    def _access(self, real: Any, *how: Any, **named: Any) -> Any:
        """Do what ``real`` does, and note the addresses, masks and values that go in."""
        found = hashlib.blake2b(real.__name__.encode(), digest_size=12)
        for handle in (*how[3:], *named.values()):
            if hasattr(handle, "data"):
                found.update(np.ascontiguousarray(handle.data).tobytes())
        self.done.setdefault(self.workgroup, []).append(found.hexdigest())
        return super()._access(real, *how, **named)

    def _touch(self, pointer: Any, mask: Any, is_write: bool) -> int | None:
        address, size, keep = self.lanes(pointer, mask)
        active = address if keep is None else address[keep]
        return self.tensor_of(active, size, is_write) if active.size else None


def _run(kernel: LoadedKernel, memory: Memory, programs: Sequence[int]) -> Done:
    watched = Watched(kernel, memory)
    for program in programs:
        watched.run(program)
    return {program: watched.done.get(program, []) for program in programs}


def _run_original(kernel: LoadedKernel, memory: Memory, programs: Sequence[int], case: Mapping[str, Any]) -> Done:
    try:
        return _run(kernel, memory, programs)
    except CaptureError as error:
        raise NotRun(f"{case['what']}: {error}") from None


def _compare(language: Language, case: dict[str, Any]) -> dict[str, Any]:
    original, new, given = _both(language, case)
    order, sample = case["order"], case["sample"]
    if sample is not None:  # too large to run whole: what each program touches is compared, and what it stores
        before = _run_original(original, given, [order[p] for p in sample], case)
        _same_programs(case, before, _run(new, given, sample))
        return {"programs": len(sample), "unwritten": {}, "races": False}
    programs = range(int(np.prod(case["grid"])))
    ranked = sorted(programs, key=lambda p: order[p]) if case["by_program"] else programs
    arrays, races, written = original.space.arrays, False, []
    for byte in POISONS:
        memory, wanted, again = (_filled(arrays, given, byte) for _ in range(3))
        before = _run_original(original, wanted, programs, case)
        after = _run(new, memory, ranked)
        for i, items in memory.items():
            if items.tobytes() != wanted[i].tobytes():
                raise _difference(case, original.space.names[i], items, wanted[i])
        _same_programs(case, before, after)
        written.append({i: _changed(arrays[i], items, byte) for i, items in memory.items() if arrays[i].role == "out"})
        if case["by_program"] and not races:
            _run(original, again, programs[::-1])
            apart = {i: _far(arrays[i], again[i], items) for i, items in wanted.items()}
            races = any(far > ROUNDING.get(arrays[i].dtype, 0.0) for i, far in apart.items())
    names = original.space.names
    unwritten = {names[i]: int((~(written[0][i] | written[1][i])).sum()) for i in written[0]}
    unwritten = {name: count for name, count in unwritten.items() if count}
    return {"programs": len(programs), "unwritten": unwritten, "races": races}


def _compare_instance(language: Language, case: dict[str, Any]) -> dict[str, Any]:
    """Largest difference of what an instance leaves in memory, over the largest item of its tensor."""
    original, instance, given = _both(language, case)
    space, largest = original.space, 0.0
    for byte in POISONS:
        wanted, memory = (_filled(space.arrays, given, byte) for _ in range(2))
        _run_original(original, wanted, range(int(np.prod(original.launch.grid))), case)
        _run(instance, memory, range(int(np.prod(instance.launch.grid))))
        for i, items in memory.items():
            far = _far(space.arrays[i], items, wanted[i])
            if far > ADDED_ANEW.get(space.arrays[i].dtype, 0.0):
                raise _difference(case, space.names[i], items, wanted[i])
            largest = max(largest, far)
    return {"largest": largest}


def _both(language: Language, case: dict[str, Any]) -> tuple[LoadedKernel, LoadedKernel, Memory]:
    """The original and the other kernel of a case, and the items of its tensors."""
    original, other = (loaded(language, Launch.from_dict(described)) for described in case["launches"])
    with np.load(case["inputs"]) as stored:
        return original, other, {int(name): items for name, items in stored.items()}


def loaded(language: Language, launch: Launch) -> LoadedKernel:
    """Kernel of a launch whose counters are memory as any other: the first program takes all tiles."""
    arrays = {name: replace(array, is_counter=False) for name, array in launch.arrays.items()}
    launch = replace(launch, arguments={**launch.arguments, **arrays})
    return LoadedKernel(language, launch, AddressSpace.place(launch.storage))


def _filled(arrays: Sequence[Array], given: Memory, byte: int) -> Memory:
    """Memory before a run: what is written holds a byte everywhere."""
    found = {i: items.copy() for i, items in given.items()}
    for i, items in found.items():
        if arrays[i].role == "out":
            items.view(np.uint8)[:] = byte
    return found


def _changed(array: Array, items: np.ndarray, byte: int) -> np.ndarray:
    bits = laid_out(array, items).copy().view(np.uint8).reshape(*array.shape, -1)
    return (bits != byte).any(axis=-1)


def _far(array: Array, items: np.ndarray, wanted: np.ndarray) -> float:
    """Largest difference over the largest item; infinite where rounding explains none, as of an item not written."""
    if items.tobytes() == wanted.tobytes():
        return 0.0
    if array.dtype not in ROUNDING:
        return np.inf
    bits = (one.astype(np.uint32) << 16 if array.dtype == "bf16" else one for one in (items, wanted))
    own, other = ((one.view(np.float32) if array.dtype == "bf16" else one).astype(np.float64) for one in bits)
    alike = items.view(np.uint8).reshape(items.size, -1) == wanted.view(np.uint8).reshape(items.size, -1)
    gap = np.abs(np.where(alike.all(axis=1), 0.0, own - other))  # unwritten in both: equal NaNs
    largest, scale = float(gap.max()), float(np.abs(other[np.isfinite(other)]).max(initial=0.0))
    return np.inf if np.isnan(largest) or (largest and not scale) else largest / (scale or 1.0)


def _difference(case: Mapping[str, Any], name: str, items: np.ndarray, wanted: np.ndarray) -> Different:
    own, other = (one.view(np.uint8).reshape(one.size, -1) for one in (items, wanted))
    differs = (own != other).any(axis=1)
    item = int(np.argmax(differs))
    return Different(
        f"{case['what']}: {name} differs in {int(differs.sum())} of {items.size} items, the first at item {item}: "
        f"{wanted[item]} before, {items[item]} after"
    )


def _same_programs(case: Mapping[str, Any], before: Done, after: Done) -> None:
    """Refuse where a program does not touch what the original's program of its tile does.

    Of a persistent kernel only the first access is distinguishable: that of a program's first tile. Where programs
    claim their tiles, the first one that runs takes them all, and none is compared but what they leave in memory.
    """
    for program, did in after.items():
        tile = case["order"][program] if program < len(case["order"]) else -1
        if case["by_program"]:
            same = did == before[tile]
        elif tile in before and not case["claimed"]:
            same = did[:1] == before[tile][:1]
        else:
            continue
        if not same:
            raise Different(f"{case['what']}: program {program} does not compute tile {tile}, as the swizzle says")
