"""As much of PyTorch as a bundle's worker uses, over numpy, for Triton's interpreter. Says ``replayed`` in its version.

Kernels really run here, interpreted; times are the interpreter's and mean nothing. ``STAND_IN_GPU`` is JSON over the
properties of the device; ``racing`` names an argument in which each launch leaves something else.
"""

import itertools
import json
import os
import time
import types

import numpy as np

__version__ = "2.9.0+replayed"

uint8, int8, int16, int32, int64 = (np.dtype(name) for name in ("u1", "i1", "i2", "i4", "i8"))
float16, float32, float64 = (np.dtype(name) for name in ("f2", "f4", "f8"))
bool = np.dtype("?")

_GPU = {"name": "AMD Instinct MI300X", "gcnArchName": "gfx942:sramecc+:xnack-", "multi_processor_count": 304}
_GPU |= {"total_memory": 192 << 30, "L2_cache_size": 4 << 20, "hip": "7.0.51831", "cuda": None, "major": 9, "minor": 0}
_GPU |= json.loads(os.environ.get("STAND_IN_GPU", "{}"))
version = types.SimpleNamespace(hip=_GPU["hip"], cuda=_GPU["cuda"])


class _Type(str):
    @property
    def _name(self):
        return self


class Tensor:
    """A numpy view."""

    def __init__(self, values):
        self.values = values

    dtype = property(lambda self: _Type(f"torch.{self.values.dtype.name}"))
    shape = property(lambda self: self.values.shape)

    # what Triton's interpreter asks for
    def data_ptr(self):
        return self.values.__array_interface__["data"][0]

    def untyped_storage(self):
        return self

    def cpu(self):
        return self

    def numpy(self):
        return self.values

    def __len__(self):
        return len(self.values)

    def new_empty(self, *_args, **_kwargs):
        return self

    def set_(self, *_args):
        return self

    def storage_offset(self):
        return 0

    def size(self):
        return self.values.shape

    def stride(self):
        return tuple(step // self.values.itemsize for step in self.values.strides)

    def element_size(self):
        return self.values.itemsize

    # what the worker asks for
    def __getitem__(self, which):
        return Tensor(self.values[which])

    def __sub__(self, other):
        return Tensor(self.values - other.values)

    def __float__(self):
        return float(self.values)

    def view(self, how):
        return Tensor(self.values.reshape(how) if isinstance(how, tuple) else self.values.view(how))

    def as_strided(self, shape, strides):
        item = self.values.itemsize
        return Tensor(np.lib.stride_tricks.as_strided(self.values, shape, [step * item for step in strides]))

    def fill_(self, value):
        self.values[...] = value

    def copy_(self, other):
        self.values[...] = other.values
        return self

    def clone(self):
        return Tensor(self.values.copy())

    def to(self, where):
        return self if isinstance(where, str) else Tensor(self.values.astype(where))

    def normal_(self, mean, deviation, generator):
        self.values[...] = generator.random.normal(mean, deviation, self.values.shape)

    def uniform_(self, low, high, generator):
        self.values[...] = generator.random.uniform(low, high, self.values.shape)

    def sum(self):
        return Tensor(self.values.sum())

    def abs(self):
        return Tensor(np.abs(self.values))

    def max(self):
        return Tensor(self.values.max())

    def tolist(self):
        return self.values.tolist()


class Generator:
    def __init__(self, device):
        self.random = np.random.default_rng(0)

    def manual_seed(self, seed):
        self.random = np.random.default_rng(seed)


def _shape(size):
    return size if isinstance(size, tuple) else (size,)


def empty(size, dtype, device):
    return Tensor(np.empty(_shape(size), dtype))


def zeros(size, dtype, device):
    return Tensor(np.zeros(_shape(size), dtype))


def full(size, value, dtype, device):
    return Tensor(np.full(_shape(size), value, dtype))


def frombuffer(data, dtype):
    return Tensor(np.frombuffer(data, dtype))


def equal(a, b):
    return np.array_equal(a.values, b.values)


def isnan(a):
    return Tensor(np.isnan(a.values))


def nan_to_num(a, **how):
    return Tensor(np.nan_to_num(a.values, **how))


class _Event:
    def __init__(self, enable_timing):
        self.at = 0.0

    def record(self):
        self.at = time.perf_counter()

    def elapsed_time(self, end):
        return (end.at - self.at) * 1e3


cuda = types.SimpleNamespace(
    is_available=lambda: _GPU["name"] != "",
    get_device_properties=lambda number: types.SimpleNamespace(**_GPU),
    synchronize=lambda: None,
    Event=_Event,
    _sleep=lambda cycles: None,
)


_launches = itertools.count(1)


class _Compiled:
    """What Triton would have compiled: arguments as its own signature has them, a code object of the stand-in's."""

    def __init__(self, function, given):
        pointers = {"uint8": "*u8", "float16": "*fp16", "float32": "*fp32", "bfloat16": "*bf16", "int32": "*i32"}
        kinds = {name: pointers.get(v.values.dtype.name, "*i8") for name, v in given.items() if isinstance(v, Tensor)}
        kinds |= {name: "i32" for name, v in given.items() if type(v) is int and not name.isupper()}
        kinds = {name: kinds.get(name, "constexpr") for name in given}
        self.src = types.SimpleNamespace(signature=kinds, constants={})
        self.metadata = types.SimpleNamespace(name=function, shared=4096, num_warps=4, warp_size=64)
        self.asm = {"hsaco": f"code of {function}".encode()}


def _give_compiled():
    """Let the interpreter return a compiled kernel, as a launch on a GPU does."""
    from triton.runtime import interpreter

    run = interpreter.GridExecutor.__call__

    def launch(self, *args, **kwargs):
        run(self, *args, **kwargs)
        given = {name: kwargs[name] for name in self.arg_names if name in kwargs}
        if _GPU.get("racing") in given:
            given[_GPU["racing"]].values.flat[0] = next(_launches)
        return _Compiled(self.fn.__name__, given)

    interpreter.GridExecutor.__call__ = launch


if os.environ.get("TRITON_INTERPRET") == "1" and "STAND_IN_GPU" in os.environ:
    _give_compiled()
