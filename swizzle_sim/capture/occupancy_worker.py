"""Compiles kernels with Triton's AMD or NVIDIA backend; a process of its own: whatever imports this runs in one too."""

from __future__ import annotations

import contextlib
import importlib.util
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, make_backend
from triton.compiler.errors import CompilationError
from triton.runtime.jit import JITFunction, create_function_from_signature
from triton.tools.tensor_descriptor import TensorDescriptor

from swizzle_sim.capture.kernel_file import constant, load_function, own_files
from swizzle_sim.capture.occupancy_code import (
    assembly_notes,
    before_loop,
    global_loads,
    in_flight,
    is_pipelined,
    loads_per_step,
    vector_cycles,
)
from swizzle_sim.capture.stand_ins import COMPUTE_UNITS, torch_for
from swizzle_sim.nvidia.sass import facts_of
from xcd_model.errors import CaptureError

WAVE_SIZE, WARP_SIZE = 64, 32
SIMDS = 4  # of a CU, which share the waves of a workgroup
RESERVED_BYTES = 1024  # of shared memory, the system's in each workgroup (NVIDIA Hopper Tuning Guide)
OF_OTHERS = {
    "hip": {"maxnreg"},
    "cuda": {"waves_per_eu", "matrix_instr_nonkdim", "kpack"},
}  # the other vendor's options
_DTYPES = {"fp8e4": "fp8e4nv"}  # every other name of `ITEM_BYTES` is one of Triton's


class Dtype(str):
    """Name of a type, which a descriptor asks for its size too."""

    itemsize = 16  # aligned whatever the stride


def _tensor(about: dict[str, Any]) -> Any:
    """A tensor argument: a pointer, or a host descriptor of one."""
    pointer = Pointer(about["dtype"], about["size_bytes"], about["first_byte"])
    if "block" not in about:
        return pointer
    aligned = [stride * 16 for stride in about["strides"][:-1]] + [1]  # values do not reach the code
    return TensorDescriptor(pointer, about["shape"], aligned, about["block"])


class Pointer:
    """A tensor as the launcher looks at it: where it begins in memory that is aligned, and so many bytes long."""

    def __init__(self, dtype: str, size_bytes: int, first_byte: int):
        self.dtype, self.size_bytes, self.first_byte = Dtype(_DTYPES.get(dtype, dtype)), size_bytes, first_byte

    def data_ptr(self) -> int:
        """Allocators of GPU memory align to at least 256 bytes."""
        return self.first_byte

    def ptr_range(self) -> int:
        """Bytes that offsets from this pointer may span."""
        return self.size_bytes


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Figures of the compiled kernel of each request, or the error."""
    return {"replies": [answered(one) for one in request["requests"]]}


def answered(request: dict[str, Any]) -> dict[str, Any]:
    """Figures of one compiled kernel, or what is wrong with it under ``error``."""
    try:
        return compile_one(request)
    except (Refused, CaptureError) as error:
        return {"error": str(error)}
    except CompilationError as error:
        return {"error": _located(request, error)}
    except Exception as error:  # Triton raises what it likes: the caller gets its name and words
        return {"error": f"{request['path']}: {request['function']}: {type(error).__name__}: {error}"}


class Refused(Exception):
    """A request that cannot be compiled as it stands."""


def compile_one(request: dict[str, Any]) -> dict[str, Any]:
    """Figures of one compiled kernel."""
    started = time.perf_counter()
    arguments = {
        name: _tensor(value) if isinstance(value, dict) else value for name, value in request["arguments"].items()
    }
    constants = {name: constant(value) for name, value in request["constexprs"].items()}
    function = load_function(request["path"], request["function"], request["sliced_for"], request["text_from"])
    given = {**arguments, **constants}
    target = target_of(request["arch"])
    backend = make_backend(target)
    given |= {"num_warps": request["num_warps"], "num_stages": request["num_stages"], **request["options"]}
    for name in OF_OTHERS[target.backend] - {one.name for one in function.params}:
        given.pop(name, None)
    _check_given(function, given, request)
    binder = create_function_from_signature(function.signature, function.params, backend)
    with warnings.catch_warnings(), _torch_for(request["arch"]):
        warnings.simplefilter("ignore")  # on defaults that a later Triton changes: the options are stored anyway
        try:
            bound, specialization, _ = binder(**given)
        except TypeError as error:
            raise Refused(f"{request['path']}: {request['function']}: the launch does not fit: {error}") from None
        options, signature, constants, attributes = function._pack_args(backend, given, bound, specialization, {})
        compiled = triton.compile(
            ASTSource(function, signature, constants, attributes), target=target, options=options.__dict__
        )
    ttir, ttgir = compiled.asm["ttir"], compiled.asm["ttgir"]
    return {
        "threads": compiled.metadata.num_warps * target.warp_size,
        **(_of_amd(compiled) if target.backend == "hip" else _of_nvidia(compiled)),
        "loads_per_step": loads_per_step(ttir, ttgir),
        "pipelined": is_pipelined(ttir, ttgir),
        "instructions_in_flight": in_flight(ttir, ttgir, compiled.metadata.num_stages),
        "options": _plain(options.__dict__),
        "compile_s": time.perf_counter() - started,
        "files": own_files(),
    }


@contextlib.contextmanager
def _torch_for(arch: str) -> Iterator[None]:
    """A stand-in for torch where there is none: AMD's backend of Triton 3.6 asks it whether an argument is a tensor."""
    if arch not in COMPUTE_UNITS or importlib.util.find_spec("torch") is not None:
        yield
        return
    sys.modules["torch"] = torch_for(arch)
    try:
        yield
    finally:
        del sys.modules["torch"]


def target_of(arch: str) -> GPUTarget:
    """Triton's target for an architecture such as ``gfx942`` or ``sm_90a``."""
    if arch.startswith("sm_"):
        return GPUTarget("cuda", int(arch[3:].rstrip("a")), WARP_SIZE)
    return GPUTarget("hip", arch, WARP_SIZE if arch.startswith("gfx12") else WAVE_SIZE)


def _of_amd(compiled: Any) -> dict[str, Any]:
    assembly, is_cdna = compiled.asm["amdgcn"], compiled.metadata.target.warp_size == WAVE_SIZE
    return {
        "lds_bytes": compiled.metadata.shared,
        **assembly_notes(assembly),
        "loads": global_loads(assembly),
        "instructions_before_loop": before_loop(assembly),
        "vector_cycles": round(vector_cycles(assembly) * compiled.metadata.num_warps / SIMDS) if is_cdna else 0,
    }


def _of_nvidia(compiled: Any) -> dict[str, Any]:
    tools = Path(triton.__file__).parent / "backends" / "nvidia" / "bin"
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(compiled.asm["cubin"])
        file.flush()
        words = _said(str(tools / "cuobjdump"), "--dump-resource-usage", file.name)
        code = _said(str(tools / "nvdisasm"), "-c", "-hex", file.name)
    return {
        "lds_bytes": compiled.metadata.shared + RESERVED_BYTES,
        **dict.fromkeys(("agprs_used", "sgprs", "sgpr_spills", "llvm_waves_per_simd"), 0),
        **facts_of(words, code, compiled.asm["ptx"]),
    }


def _said(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Refused(f"{Path(command[0]).name} ended with status {done.returncode}: {done.stderr.strip()[-300:]}")
    return done.stdout


def _check_given(function: JITFunction, given: dict[str, Any], request: dict[str, Any]) -> None:
    """Name what is missing as the capture does: Triton's binder names a function of its own."""
    missing = [one.name for one in function.params if one.name not in given and not one.has_default]
    if missing:
        called = f"{request['function']}({', '.join(one.name for one in function.params)})"
        raise Refused(f"{request['path']}: {called} is not given {', '.join(missing)}")


def _located(request: dict[str, Any], error: CompilationError) -> str:
    """Words of a compile error, with the line in the file where that is known."""
    where, text = request["path"], error.error_message or str(error).splitlines()[-1]
    cause: BaseException = error
    while cause.__cause__ is not None:  # the innermost is in the helper at fault
        cause = cause.__cause__
    if isinstance(cause, CompilationError):
        text = cause.error_message or text
    elif cause is not error:
        text = f"{type(cause).__name__}: {cause}"
    source = Path(request["text_from"] or where).read_text(encoding="utf-8")
    if error.src and error.src in source and hasattr(error.node, "lineno"):
        first = source[: source.index(error.src)].count("\n")
        where = f"{where}:{first + error.node.lineno}"
    return f"{where}: {request['function']} for {request['arch']}: {text}"


def _plain(options: dict[str, Any]) -> dict[str, Any]:
    kinds = (bool, int, float, str, type(None))
    return {name: value for name, value in sorted(options.items()) if isinstance(value, kinds)}
