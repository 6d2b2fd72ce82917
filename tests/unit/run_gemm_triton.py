"""Run the suite's Triton GEMM under TRITON_INTERPRET=1: ``python -m tests.unit.run_gemm_triton PROBLEM_JSON OUT.npy``.

Every element of C lies between guard items, and stays NaN until the kernel stores it.
"""

import functools
import json
import sys

import numpy as np

from swizzle_benchmarks.suite.gemm import gemm
from swizzle_benchmarks.suite.gemm_triton import gemm as gemm_triton

GUARD = 64  # items before and after C that no workgroup may store to


@functools.cache  # Triton remembers types by object: each must live as long as the process, as torch's do
class DType:
    """What Triton reads of a torch dtype: its last word."""

    def __init__(self, name):
        self.name = name

    def __str__(self):
        return f"torch.{self.name}"


class Storage:
    def __init__(self, array):
        self.array = array

    def data_ptr(self):
        return self.array.ctypes.data

    def cpu(self):
        return Storage(self.array.copy())

    def copy_(self, other):
        self.array[...] = other.array


class Tensor:
    """As much of a torch tensor, over a numpy array, as Triton's interpreter asks for."""

    def __init__(self, array, offset=0):
        self.storage, self.offset, self.dtype = Storage(array), offset, DType(array.dtype.name)

    def data_ptr(self):
        return self.storage.data_ptr() + self.offset * self.storage.array.itemsize

    def untyped_storage(self):
        return self.storage

    def storage_offset(self):
        return self.offset

    def element_size(self):
        return self.storage.array.itemsize

    def size(self):
        return self.storage.array.shape

    def stride(self):
        return tuple(s // self.element_size() for s in self.storage.array.strides)

    def new_empty(self, size, device=None):
        return Tensor(np.empty(size, self.storage.array.dtype))

    def set_(self, storage, offset, size, stride):
        self.storage, self.offset = storage, offset


def main(problem_json, out):
    problem = json.loads(problem_json)
    work = gemm(**problem)
    inputs = work.make_inputs(0)
    m, n, k = (problem[name] for name in "MNK")
    c = np.full(2 * GUARD + m * n, np.nan, np.float16)
    blocks = {name: size for name, size in problem.items() if name.startswith("BLOCK")}
    operands = (Tensor(inputs["a"]), Tensor(inputs["b"]), Tensor(c, GUARD))
    gemm_triton[work.grid.launch](*operands, m, n, k, k, n, n, **blocks)
    if not (np.isnan(c[:GUARD]).all() and np.isnan(c[-GUARD:]).all()):
        sys.exit("the kernel stored outside C")
    np.save(out, c[GUARD:-GUARD].reshape(m, n))


if __name__ == "__main__":
    main(*sys.argv[1:])
