"""What a kernel may hold, one small kernel each: docs/capture.md says which are followed, and the test compares."""

import numpy as np
import triton
import triton.language as tl

from swizzle_sim.capture import Array, Kernel


@triton.jit
def add(a, b):
    """Of a scan."""
    return a + b


@triton.jit
def copy_tile(x, y, tile, B: tl.constexpr):
    """What most kernels here do with a tile."""
    at = tile * B + tl.arange(0, B)
    tl.store(y + at, tl.load(x + at))


@triton.jit
def dot_scaled(x, y, flags, n, B: tl.constexpr):
    """`tl.dot`, `tl.dot_scaled`"""
    rows, deep = tl.arange(0, 32), tl.arange(0, 64)
    a = tl.load(x + rows[:, None] * 64 + deep[None, :]).to(tl.float8e5)
    b = tl.load(x + deep[:, None] * 32 + rows[None, :]).to(tl.float8e5)
    scale = tl.load(flags + rows[:, None] * 2 + tl.arange(0, 2)[None, :]).to(tl.uint8)
    tl.store(y + rows[:, None] * 32 + rows[None, :], tl.dot_scaled(a, scale, "e5m2", b, scale, "e5m2"))


@triton.jit
def device_descriptor(x, y, flags, n, B: tl.constexpr):
    """a tensor descriptor made in the kernel"""
    source = tl.make_tensor_descriptor(x, [n // B, B], [B, 1], [4, B])
    target = tl.make_tensor_descriptor(y, [n // B, B], [B, 1], [4, B])
    at = tl.program_id(0) * 4
    target.store([at, 0], source.load([at, 0]))


@triton.jit
def block_pointers(x, y, flags, n, B: tl.constexpr):
    """`tl.make_block_ptr`, `tl.advance` (of Triton before 3.9)"""
    source = tl.make_block_ptr(x, (n,), (1,), (tl.program_id(0) * B,), (B,), (0,))
    target = tl.make_block_ptr(y, (n,), (1,), (0,), (B,), (0,))
    tl.store(tl.advance(target, (tl.program_id(0) * B,)), tl.load(source, boundary_check=(0,)), boundary_check=(0,))


@triton.jit
def descriptor_gather(x, y, flags, n, B: tl.constexpr):
    """gather, scatter or atomic of a tensor descriptor"""
    tl.make_tensor_descriptor(y, [n // B, B], [B, 1], [4, B]).atomic_add([0, 0], tl.zeros([4, B], tl.float32))


@triton.jit
def pointers(x, y, flags, n, B: tl.constexpr):
    """an array of pointers without `points_to=`"""
    place = tl.load(flags + tl.program_id(0)).to(tl.int64).to(tl.pointer_type(tl.float32))
    tl.store(y + tl.arange(0, B), tl.load(place + tl.arange(0, B)))


@triton.jit
def sums(x, y, flags, n, B: tl.constexpr):
    """an atomic whose result is not used"""
    tl.atomic_add(y + tl.arange(0, B), tl.load(x + tl.program_id(0) * B + tl.arange(0, B)))


@triton.jit
def tile_counter(x, y, flags, n, B: tl.constexpr):
    """an atomic that hands out tiles"""
    copy_tile(x, y, tl.atomic_add(flags, 1), B)


@triton.jit
def lock(x, y, flags, n, B: tl.constexpr):
    """a lock: `while tl.atomic_cas(...)`"""
    while tl.atomic_cas(flags, 0, 1) == 1:
        pass
    copy_tile(x, y, tl.program_id(0), B)
    tl.atomic_xchg(flags, 0)


@triton.jit
def wait(x, y, flags, n, B: tl.constexpr):
    """a wait for another workgroup's flag, not `is_index=True`"""
    if tl.program_id(0) > 0:
        while tl.load(flags + tl.program_id(0) - 1, volatile=True) != 1:
            pass
    copy_tile(x, y, tl.program_id(0), B)
    tl.store(flags + tl.program_id(0), 1)


@triton.jit
def branch(x, y, flags, n, B: tl.constexpr):
    """a branch on floating-point data"""
    if tl.max(tl.load(x + tl.arange(0, B))) > 0.5:
        copy_tile(x, y, tl.program_id(0), B)


@triton.jit
def data_address(x, y, flags, n, B: tl.constexpr):
    """an address from data without `is_index=True`"""
    tl.store(y + tl.load(flags + tl.program_id(0)), 1.0)


@triton.jit
def folds(x, y, flags, n, B: tl.constexpr):
    """scans, sorts, histograms, `tl.gather` of data"""
    at = tl.program_id(0) * B + tl.arange(0, B)
    found = tl.sort(tl.associative_scan(tl.load(x + at), 0, add))
    counts = tl.histogram(tl.load(flags + tl.arange(0, B)), B).to(tl.float32)
    tl.store(y + at, tl.gather(found, (tl.arange(0, B) + 1) % B, 0) + counts)


@triton.jit
def random(x, y, flags, n, B: tl.constexpr):
    """`tl.rand` and its like"""
    at = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(y + at, tl.rand(7, at))


@triton.jit
def assembly(x, y, flags, n, B: tl.constexpr):
    """inline assembly"""
    at = tl.program_id(0) * B + tl.arange(0, B)
    value = tl.inline_asm_elementwise("v_mov_b32 $0, $1;", "=v,v", [tl.load(x + at)], tl.float32, True, 1)
    tl.store(y + at, value)


@triton.jit
def hints(x, y, flags, n, B: tl.constexpr):
    """`tl.range` with hints, `tl.static_range`, tuples, asserts and prints"""
    both = (x, y)
    tl.device_assert(n > 0)
    tl.static_assert(tl.extra.cuda.num_threads() == 32 * tl.extra.cuda.num_warps())
    for tile in tl.range(tl.program_id(0), n // B, tl.num_programs(0), num_stages=2, warp_specialize=True):
        for half in tl.static_range(2):
            at = tile * B + half * (B // 2) + tl.arange(0, B // 2)
            half_row = tl.load(both[0] + at, mask=half * B < B, other=0.0)
            tl.store(both[1] + at, tl.reshape(tl.reshape(half_row, [1] + half_row.shape), half_row.shape))  # noqa: RUF005


FUNCTIONS = (dot_scaled, device_descriptor, block_pointers, sums, folds, random, hints)
FUNCTIONS += (tile_counter, lock, wait, pointers, data_address, branch, descriptor_gather, assembly)


def _declared(function):
    return Kernel(
        function,
        sizes={"n": 4096},
        arguments=lambda s: {
            "x": Array(shape=(s.n,), dtype="fp32"),
            "y": Array(shape=(s.n,), dtype="fp32", role="inout"),
            "flags": Array(shape=(s.n,), dtype="int32", role="inout"),
            "n": s.n,
        },
        constexprs={"B": 64},
        grid=(4,),
        make_inputs=lambda s, seed: {"flags": np.zeros(s.n, np.int32)},
    )


kernels = {one.fn.__doc__: _declared(one) for one in FUNCTIONS}
