"""Runs a kernel and its rewritten form in Triton's interpreter and compares them; a process of its own.

Both run on the same memory, so that not only outputs but the addresses each program touches can be compared: program
``p`` of the rewritten kernel must do exactly what program ``order[p]`` of the original does.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
from triton.runtime import interpreter
from triton.runtime.interpreter import InterpretedFunction, interpreter_builder
from triton.tools.tensor_descriptor import TensorDescriptor

from swizzle_sim.capture.block_logic import join_blocks
from swizzle_sim.capture.device_library import bfloat16_bits, give_data_results
from swizzle_sim.capture.kernel_file import constant, load_function
from swizzle_sim.capture.memory import KINDS
from swizzle_sim.capture.patched_once import patch_once_a_launch
from swizzle_sim.capture.scalars import give_aggregates_methods, give_scalars_methods
from swizzle_sim.capture.stand_ins import TORCH_DTYPES
from swizzle_sim.capture.values import source_line

GUARD_ITEMS = 64  # before and after a tensor, where no program may store
POISONS = (0xFF, 0xA5)  # the first is a NaN in every floating-point type
_TOUCHING = ("create_masked_load", "create_masked_store", "create_atomic_rmw", "create_atomic_cas")


class Different(Exception):
    """The rewritten kernel does not do what the original does."""


class NotRun(Exception):
    """The original cannot run at these sizes."""


def prepare() -> None:
    """Give the interpreter what it lacks."""
    give_scalars_methods(interpreter)
    give_aggregates_methods(interpreter)
    join_blocks(interpreter)
    give_data_results(interpreter)
    patch_once_a_launch(interpreter)


def main(question: str, answer: str) -> None:
    """Run every case of the request and write what was found."""
    request = json.loads(Path(question).read_text(encoding="utf-8"))
    prepare()
    try:
        kernels = [_undecorated(load_function(*one)) for one in request["kernels"]]
        reply: dict[str, Any] = {"cases": _compare_all(kernels, request["cases"])}
    except Different as error:
        reply = {"different": str(error)}
    except Exception as error:  # a kernel raises what it likes: the caller gets its name and words
        reply = {"error": f"{type(error).__name__}: {error}"}
    Path(answer).write_text(json.dumps(reply), encoding="utf-8")


def _compare_all(kernels: list[Any], cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of each kind of case the first that the original runs at; why not, of those before it."""
    found: list[dict[str, Any]] = []
    done: set[str] = set()
    for case in cases:
        try:
            found.append({"not_run": "not needed"} if case["kind"] in done else _compare(kernels, case))
            done.add(case["kind"])
        except NotRun as error:
            found.append({"not_run": str(error)})
    return found


def _undecorated(kernel: Any) -> Any:
    while not isinstance(kernel, InterpretedFunction):
        kernel = kernel.fn
    return kernel


class Dtype(str):
    """Name of a type of torch's, which a descriptor asks for its size too."""

    itemsize = 16  # aligned whatever the stride


class Tensor:
    """As much of a torch tensor, over numpy memory between guards, as Triton's interpreter uses: no torch, no copies.

    Parameters
    ----------
    dtype : str
        A key of `swizzle_sim.workload.launch.ITEM_BYTES`.
    shape, strides : tuple of int
        Strides in items.
    n_items : int
        From the first item to the last.
    """

    def __init__(self, dtype: str, shape: tuple[int, ...], strides: tuple[int, ...], n_items: int):
        stored = np.dtype(KINDS.get(dtype, dtype))
        self.memory = np.zeros(n_items + 2 * GUARD_ITEMS, stored)  # untouched pages cost nothing
        self.dtype = Dtype(f"torch.{TORCH_DTYPES[dtype]}")
        self.shape, self.strides = shape, strides
        item = stored.itemsize
        self.values = np.lib.stride_tricks.as_strided(self.memory[GUARD_ITEMS:], shape, [s * item for s in strides])

    def poison(self, byte: int) -> None:
        """Fill every byte, guards included."""
        self.memory.view(np.uint8)[:] = byte

    def put(self, values: np.ndarray) -> None:
        """Fill it with values of its shape; bf16 and fp8 come as numbers or as their bits."""
        if values.dtype.itemsize == self.values.dtype.itemsize and self.values.dtype.kind == "u":
            values = values.view(self.values.dtype)
        elif self.dtype == "torch.bfloat16":
            values = bfloat16_bits(values)
        self.values[...] = values.reshape(self.shape)

    def data_ptr(self) -> int:
        """Address of the first item."""
        return self.memory.ctypes.data + GUARD_ITEMS * self.memory.itemsize

    def untyped_storage(self) -> Tensor:
        """Return the tensor itself: it owns its memory."""
        return self

    def cpu(self) -> Tensor:
        """Return the tensor itself: it is where the interpreter reads it."""
        return self

    def new_empty(self, *_args, **_kwargs) -> Tensor:
        """Return the tensor itself, which the interpreter then points at its storage."""
        return self

    def set_(self, *_args) -> Tensor:
        """Point it at where it is."""
        return self

    def copy_(self, _other) -> Tensor:
        """Nothing to copy."""
        return self

    def storage_offset(self) -> int:
        """Items from the storage's start."""
        return 0

    def size(self) -> tuple[int, ...]:
        """Shape."""
        return self.shape

    def stride(self) -> tuple[int, ...]:
        """Strides in items."""
        return self.strides

    def element_size(self) -> int:
        """Bytes of an item."""
        return self.memory.itemsize


def _compare(kernels: list[Any], case: dict[str, Any]) -> dict[str, Any]:
    inputs = dict(np.load(case["inputs"])) if case["inputs"] else {}
    tensors = {name: _tensor(about) for name, about in case["tensors"].items()}
    order, sample = case["order"], case["sample"]
    runs = range(int(np.prod(case["grid"]))) if sample is None else sample
    if sample is not None:  # too large to run whole: what each program touches is compared, and what it stores
        _fill_sampled(tensors, case, inputs)
        before = _run_original(kernels[0], case, tensors, [order[p] for p in runs])
        _fill_sampled(tensors, case, inputs)
        after = _run(kernels[1], case, 1, tensors, list(runs))
        _same_programs(case, order, before, after, list(runs))
        return {"programs": len(runs), "unwritten": {}}
    written: list[dict[str, np.ndarray]] = []
    for byte in POISONS:
        _fill(tensors, case, inputs, byte)
        before = _run_original(kernels[0], case, tensors, list(runs))
        wanted = {name: tensor.memory.copy() for name, tensor in tensors.items()}
        _fill(tensors, case, inputs, byte)
        ranked = sorted(runs, key=lambda p: order[p]) if case["by_program"] else list(runs)
        after = _run(kernels[1], case, 1, tensors, ranked)
        _same_memory(case, tensors, wanted)
        _same_programs(case, order, before, after, list(runs))
        written.append({name: _changed(tensor, byte) for name, tensor in _outputs(tensors, case)})
    unwritten = {name: int((~(written[0][name] | written[1][name])).sum()) for name in written[0]}
    return {"programs": len(runs), "unwritten": {name: count for name, count in unwritten.items() if count}}


def _tensor(about: dict[str, Any]) -> Tensor:
    return Tensor(about["dtype"], tuple(about["shape"]), tuple(about["strides"]), about["n_items"])


def _outputs(tensors: dict[str, Tensor], case: dict[str, Any]) -> list[tuple[str, Tensor]]:
    return [(name, tensor) for name, tensor in tensors.items() if case["tensors"][name]["role"] == "out"]


def _fill(tensors: dict[str, Tensor], case: dict[str, Any], inputs: dict[str, np.ndarray], byte: int) -> None:
    for name, tensor in tensors.items():
        tensor.poison(byte)
        if case["tensors"][name]["points_to"]:
            tensor.put(_addresses(tensors, case["tensors"][name]))
        elif case["tensors"][name]["role"] != "out":
            tensor.put(inputs[name])


def _fill_sampled(tensors: dict[str, Tensor], case: dict[str, Any], inputs: dict[str, np.ndarray]) -> None:
    """Zero what programs may write; give values only where addresses depend on them."""
    for name, tensor in tensors.items():
        if case["tensors"][name]["role"] != "in":
            tensor.memory[:] = 0
        if case["tensors"][name]["points_to"]:
            tensor.put(_addresses(tensors, case["tensors"][name]))
        elif name in inputs:
            tensor.put(inputs[name])


def _addresses(tensors: dict[str, Tensor], about: dict[str, Any]) -> np.ndarray:
    """Items of an array of pointers."""
    return np.array([tensors[name].data_ptr() for name in about["points_to"]], about["dtype"])


def _changed(tensor: Tensor, byte: int) -> np.ndarray:
    bits = tensor.values.copy().view(np.uint8).reshape(*tensor.shape, -1)
    return (bits != byte).any(axis=-1)


def _same_memory(case: dict[str, Any], tensors: dict[str, Tensor], wanted: dict[str, np.ndarray]) -> None:
    for name, tensor in tensors.items():
        own, other = (memory.view(np.uint8).reshape(memory.size, -1) for memory in (tensor.memory, wanted[name]))
        differs = (own != other).any(axis=1)
        if differs.any():
            item = int(np.argmax(differs)) - GUARD_ITEMS
            raise Different(
                f"{case['what']}: {name} differs in {int(differs.sum())} of {tensor.values.size} items, the first at "
                f"item {item}: {wanted[name][item + GUARD_ITEMS]} before, {tensor.memory[item + GUARD_ITEMS]} after"
            )


def _same_programs(
    case: dict[str, Any], order: list[int], before: dict[int, list], after: dict[int, list], programs: list[int]
) -> None:
    """Refuse where a program does not touch what the original's program of its tile does.

    Of a persistent kernel only the first access is distinguishable: that of a program's first tile. Where programs
    claim their tiles, the first one that runs takes them all, and none is compared but what they leave in memory.
    """
    for program in programs:
        tile = order[program] if program < len(order) else -1
        if case["by_program"]:
            same = after[program] == before[tile]
        elif tile in before and not case["claimed"]:
            same = after[program][:1] == before[tile][:1]
        else:
            continue
        if not same:
            raise Different(f"{case['what']}: program {program} does not compute tile {tile}, as the swizzle says")


def _run_original(
    kernel: Any, case: dict[str, Any], tensors: dict[str, Tensor], programs: list[int]
) -> dict[int, list[str]]:
    try:
        return _run(kernel, case, 0, tensors, programs)
    except Exception as error:
        cause: BaseException = error
        while (inner := cause.__cause__ or cause.__context__) is not None:
            cause = inner
        text = str(cause) if isinstance(cause, OutOfBounds) else f"{type(cause).__name__}: {cause}"
        raise NotRun(f"{case['what']}: {text}") from None


class OutOfBounds(Exception):
    """A program reads or writes outside its tensors."""


def _check_bounds(name: str, handles: tuple[Any, ...], tensors: dict[str, Tensor]) -> None:
    """Refuse addresses outside all tensors, before memory is touched."""
    place = 1 if name == "create_atomic_rmw" else 0
    mask = {"create_masked_load": 1, "create_masked_store": 2, "create_atomic_rmw": 3}.get(name)
    address = handles[place].data.reshape(-1).astype(np.int64)
    if mask is not None and handles[mask] is not None:
        address = address[np.broadcast_to(handles[mask].data, handles[place].data.shape).reshape(-1)]
    item = max(1, handles[place].get_element_ty().primitive_bitwidth // 8)
    left = np.ones(address.shape, bool)
    for tensor in tensors.values():
        first = tensor.data_ptr()
        end = first + (tensor.memory.size - 2 * GUARD_ITEMS) * tensor.memory.itemsize
        left &= (address < first) | (address + item > end)
    if left.any():
        nearest = min(tensors, key=lambda one: abs(tensors[one].data_ptr() - int(address[left][0])))
        raise OutOfBounds(f"the kernel leaves its tensors at {source_line()}, near {nearest}")


def _run(
    kernel: Any, case: dict[str, Any], which: int, tensors: dict[str, Tensor], programs: list[int]
) -> dict[int, list[str]]:
    """Run some programs in the order given; returns what each touched, as digests in program order."""
    grid = (*case["grid"], 1, 1)[:3]
    touched: dict[int, list[str]] = {program: [] for program in programs}
    state = {"turn": -1, "program": 0}
    names = {name: getattr(interpreter_builder, name) for name in (*_TOUCHING, "set_grid_idx", "set_grid_dim")}

    def set_grid_dim(*_sides: int) -> None:
        names["set_grid_dim"](*grid)

    def set_grid_idx(*_place: int) -> None:
        state["turn"] += 1
        program = state["program"] = programs[state["turn"]]
        names["set_grid_idx"](program % grid[0], program // grid[0] % grid[1], program // (grid[0] * grid[1]))

    def noting(name: str) -> Any:
        def touch(*handles: Any, **named: Any) -> Any:
            _check_bounds(name, handles, tensors)
            touched[state["program"]].append(_digest(name, (*handles, *named.values())))
            return names[name](*handles, **named)

        return touch

    replaced = {
        "set_grid_dim": set_grid_dim,
        "set_grid_idx": set_grid_idx,
        "create_assume": lambda condition: None,  # the compiler takes it at its word
        **{name: noting(name) for name in _TOUCHING},
    }
    for name, method in replaced.items():
        setattr(interpreter_builder, name, method)
    try:
        constants = {name: constant(value) for name, value in case["constexprs"][which].items()}
        given = {name: _argument(tensor, case["tensors"][name]) for name, tensor in tensors.items()}
        kernel[(len(programs),)](**given, **case["scalars"], **constants)
    finally:
        for name in replaced:
            delattr(interpreter_builder, name)
    return touched


def _argument(tensor: Tensor, about: dict[str, Any]) -> Any:
    """A tensor as the launch hands it over: itself, or a host descriptor of it."""
    if about["block"] is None:
        return tensor
    return TensorDescriptor(tensor, list(tensor.shape), list(tensor.strides), about["block"])


def _digest(name: str, handles: tuple[Any, ...]) -> str:
    """Digest of what an instruction does: addresses, masks and values that go in."""
    found = hashlib.blake2b(name.encode(), digest_size=12)
    for handle in handles:
        if hasattr(handle, "data"):
            found.update(np.ascontiguousarray(handle.data).tobytes())
    return found.hexdigest()
