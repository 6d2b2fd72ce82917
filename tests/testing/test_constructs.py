"""Is each construct of other people's kernels read right, one small function a construct?"""

import numpy as np
import pytest

from swizzle_sim.language import Grid, Swizzle, family
from swizzle_sim.testing import assert_bijective, read_prologue
from swizzle_sim.testing.run import check_file
from xcd_model.errors import LanguageError


def results(path):
    return {one.name.partition("::")[2]: one for one in check_file(path)}


def order(path, function, grid, num_xcds=8, **sizes):
    text = read_prologue(path, function, given=sizes).text.with_values(sizes)
    return Swizzle.parse(text.text).permutation(grid, num_xcds, sizes)


CAST = """
@triton.jit
def exact(pid, GRID_MN, NUM_XCDS: tl.constexpr = 8):
    tall = GRID_MN % NUM_XCDS
    if tall == 0:
        tall = tl.cast(NUM_XCDS, tall.type)
    xcd = (pid % NUM_XCDS).to(tl.int64)
    at = tl.cast(pid // NUM_XCDS, dtype=tl.int32)
    high = tl.cdiv(GRID_MN, NUM_XCDS)
    return tl.where(xcd < tall, xcd * high + at, tall * high + (xcd - tall) * (high - 1) + at)
"""


def test_casts_and_a_guessed_grid(written):
    found = results(written(CAST))["exact"]
    assert (found.status, found.guessed) == ("passed", "GRID_MN=num_pids")
    assert "guessed: GRID_MN=num_pids" in found.message


CHUNKED = """
@triton.jit
def chunked(wid, num_workgroups, num_xcds: tl.constexpr, chunk_size: tl.constexpr{default}):
    span = num_xcds * chunk_size
    if wid > num_workgroups // span * span:
        return wid
    at = wid // num_xcds
    return at // chunk_size * span + wid % num_xcds * chunk_size + at % {part}
"""


@pytest.mark.parametrize("default", ["", " = 2"], ids=["no default", "default"])
def test_a_partial_map_is_tried_with_every_chunk(written, default):
    found = results(written(CHUNKED.format(default=default, part="chunk_size")))["chunked"]
    assert found.status == "passed"
    assert "chunk_size=1,2,4,8,16,32,64" in found.guessed
    assert "wid=pid" in found.guessed
    # right with the default, and wrong with the chunks that a caller may pass
    wrong = results(written(CHUNKED.format(default=default, part="2")))["chunked"]
    assert wrong.status == "failed"
    assert "chunk_size=" in wrong.message


def test_helpers_of_other_files(written, tmp_path):
    written(CAST, "lib/maps.py")
    written("COLUMNS = 4\n@triton.jit\ndef inner(a):\n    return a % COLUMNS\n"
            "@triton.jit\ndef outer(a, b):\n    return inner(a) + a // 4 * 4 + b\n", "lib/more.py")  # fmt: skip
    written("from .maps import exact\n", "lib/__init__.py", head="")
    path = written(
        """
        from lib import exact as remap
        from .more import outer
        from . import more as other
        def inner(a): return 7
        @triton.jit
        def gemm(c, M, N, BLOCK: tl.constexpr):
            num_pid_m = tl.cdiv(M, BLOCK)
            num_pid_n = tl.cdiv(N, BLOCK)
            pid = outer(remap(tl.program_id(0), num_pid_m * num_pid_n), 0)
            pid = other.outer(pid, 0)
            pid_m = pid // num_pid_n
            pid_n = pid % num_pid_n
            tl.store(c + pid_m * N + pid_n, 1)
        """,
        "lib/gemm.py",
    )
    assert results(path)["gemm"].status == "passed"
    got = order(path, "gemm", Grid((15,), (3, 5)), M=6, N=10, BLOCK=2)
    np.testing.assert_array_equal(got, Swizzle.parse(family("contiguous")).permutation(Grid((15,), (3, 5)), 8))


def test_a_fault_in_a_helper_of_another_file_is_shown_at_the_call(written):
    written("@triton.jit\ndef part(a):\n    return a / 2\n", "other.py")
    path = written("from other import part\n@triton.jit\ndef f(pid):\n    return part(pid % 8) + pid // 8\n")
    assert results(path)["f"].status == "skipped"
    with pytest.raises(LanguageError, match=r"k\.py:7:.*'/'"):
        assert_bijective(f"{path}::f")


THREE = """
@triton.jit
def spread(wid, HEADS, NUM_BLOCKS, BATCH, NUM_XCDS: tl.constexpr = 8):
    head = wid % HEADS
    if {guard}:
        head = wid % NUM_XCDS * (HEADS // NUM_XCDS) + wid // NUM_XCDS % (HEADS // NUM_XCDS)
    rest = wid // HEADS
    return head, rest % NUM_BLOCKS, rest // NUM_BLOCKS
"""


def test_three_coordinates_of_one_id(written):
    found = results(written(THREE.format(guard="HEADS % NUM_XCDS == 0")))["spread"]
    assert found.status == "passed", found.message
    wrong = results(written(THREE.format(guard="HEADS >= NUM_XCDS")))["spread"]
    assert wrong.status == "failed"
    assert "HEADS=" in wrong.message
    unlike = results(written(THREE.format(guard="HEADS % 8 == 0").replace("BATCH", "heads_per_batch")))["spread"]
    assert (unlike.status, unlike.rule) == ("skipped", "SW203")


def test_coordinates_that_are_returned_the_other_way_round_count_what_their_names_say(written):
    text = "@triton.jit\ndef swap(tile_id, num_pid_n, num_pid_m):\n    a = tile_id % 2 + tile_id // 2 * 2\n"
    text += "    pid_n = a // num_pid_m\n    pid_m = a % num_pid_m\n    return pid_n, pid_m\n"
    assert results(written(text))["swap"].status == "passed"


def test_four_coordinates_need_their_extents(written):
    text = """
    {line}
    @triton.jit
    def four(pid):
        a = pid % 2 * 3 + pid // 2 % 3
        b = a % 2
        return b, a // 2, pid // 6 % 2, pid // 12
    """
    found = results(written(text.format(line="")))["four"]
    assert (found.status, found.advice) == ("skipped", "# swizzle: tiles=..., one count for each coordinate")
    path = written(text.format(line='# swizzle: tiles="2, 3, 2, N" launch="12 * N" N=1,2,5'))
    assert results(path)["four"].status == "passed"
    path = written(
        text.format(line='# swizzle: tiles="2, 3, 2, N" launch="12 * N" N=1,2,5').replace("pid // 12", "pid // 6")
    )
    assert results(path)["four"].status == "failed"


LOOP = """
@triton.jit
def gemm(c, M, N, BLOCK: tl.constexpr, NUM_SMS: tl.constexpr, GROUP_SIZE_M: tl.constexpr):
    start = tl.program_id(axis=0)
    num_pid_n = tl.cdiv(N, BLOCK)
    tiles = tl.cdiv(M, BLOCK) * num_pid_n
    {loop}
        group = tile // (GROUP_SIZE_M * num_pid_n)
        rows = min(tl.cdiv(M, BLOCK) - group * GROUP_SIZE_M, GROUP_SIZE_M)
        pid_m = group * GROUP_SIZE_M + tile % (GROUP_SIZE_M * num_pid_n) % {rows}
        pid_n = tile % (GROUP_SIZE_M * num_pid_n) // {rows}
        tl.store(c + pid_m * N + pid_n, 1)
"""
LOOPS = {
    "for": "for tile in tl.range(start, tiles, NUM_SMS):",
    "flattened": "for tile in tl.range(start, tiles, NUM_SMS, flatten=True, num_stages=2):",
    "while": "tile = start\n    while tile < tiles:",
}


@pytest.mark.parametrize("loop", LOOPS, ids=str)
def test_a_persistent_loop_is_read_as_the_map_of_its_index(written, loop):
    text = LOOP.format(loop=LOOPS[loop], rows="{rows}") + ("        tile += NUM_SMS\n" if loop == "while" else "")
    found = results(written(text.format(rows="rows")))["gemm"]
    assert (found.status, found.guessed) == ("passed", "GROUP_SIZE_M=1,2,4,8,16,32,64"), found.message
    assert results(written(text.format(rows="GROUP_SIZE_M")))["gemm"].status == "failed"


@pytest.mark.parametrize(
    ("begun", "grows", "status"),
    [
        ("start - NUM_SMS", "NUM_SMS", "passed"), ("start", "NUM_SMS", "skipped"),
        ("start - NUM_SMS\n    start = start // 2", "NUM_SMS", "skipped"),
        ("start - NUM_SMS", "2 * NUM_SMS", "skipped"),
    ],
)  # fmt: skip
def test_a_second_index_that_goes_along_is_the_first(written, begun, grows, status):
    loop = f"again = {begun}\n    {LOOPS['for']}\n        again += {grows}"
    text = LOOP.format(loop=loop, rows="rows").replace("group = tile", "group = again")
    assert results(written(text.replace("tile %", "again %")))["gemm"].status == status


@pytest.mark.parametrize("loop", LOOPS, ids=str)
@pytest.mark.parametrize(
    ("start", "status"), [("NUM_SMS - 1 - {}", "passed"), ("{} // 2", "failed"), ("{} + 1", "failed")]
)
def test_where_a_program_starts_is_part_of_the_map(written, loop, start, status):
    text = LOOP.format(loop=LOOPS[loop], rows="rows") + ("        tile += NUM_SMS\n" if loop == "while" else "")
    text = text.replace("tl.program_id(axis=0)", start.format("tl.program_id(axis=0)"))
    found = results(written("# swizzle: GROUP_SIZE_M=4" + text))["gemm"]
    assert found.status == status, found.message


def test_a_step_that_is_a_literal_is_no_persistent_loop(written):
    found = results(written(LOOP.format(loop="for tile in tl.range(start, tiles, 1):", rows="rows")))["gemm"]
    assert found.status == "skipped"


GUARDED = """
# swizzle: {line}
@triton.jit
def k(c, ROWS, COLS, NUM_XCDS: tl.constexpr = 8):
    pid = tl.program_id(0)
    per = {per}
    pid = pid % NUM_XCDS * per + pid // NUM_XCDS
    if pid >= ROWS * COLS:
        return
    pid_m = pid // COLS
    pid_n = pid % COLS
    tl.store(c + pid_m + pid_n, 1)
"""
PADDED = 'tiles=ROWS,COLS launch="cdiv(ROWS * COLS, NUM_XCDS) * NUM_XCDS" ROWS=1,3,28 COLS=1,7,399'


def test_a_padded_launch_whose_surplus_returns(written):
    held = results(written(GUARDED.format(line=PADDED, per="tl.cdiv(ROWS * COLS, NUM_XCDS)")))["k"]
    assert held.status == "passed", held.message
    assert held.message.endswith("; up to 31 of 32 workgroups have no tile")
    short = results(written(GUARDED.format(line=PADDED, per="ROWS * COLS // NUM_XCDS")))["k"]
    assert short.status == "failed"
    assert "tile" in short.message
    # where the launch has a workgroup for each tile and no more, nobody returns, and runs of unequal length are needed
    exact = results(written(GUARDED.format(line="launch=ROWS*COLS", per="tl.cdiv(ROWS * COLS, NUM_XCDS)")))["k"]
    assert exact.status == "failed"


def test_methods_and_functions_inside_functions(written):
    path = written(
        """
        def build(tiles_m, tiles_n):
            xcds = 8
            whole = tiles_m * tiles_n
            q, r = whole // xcds, whole % xcds
            high = whole // xcds
            def remap(pid):
                x = pid % xcds
                return x * high + min(x, whole % xcds) + pid // xcds
            return remap

        class Grid:
            @triton.jit
            def place(self, tile_id):
                num_pid_m = tl.cdiv(self.M, self.block)
                num_pid_n = tl.cdiv(self.N, self.block)
                in_group = self.group_size_m * num_pid_n
                first = tile_id // in_group * self.group_size_m
                rows = self.clipped(num_pid_m - first)
                pid_m = first + tile_id % in_group % rows
                pid_n = tile_id % in_group // rows
                return pid_m, pid_n

            @triton.jit
            def clipped(self, rows):
                return min(rows, self.group_size_m)
        """
    )
    found = results(path)
    assert {name: one.status for name, one in found.items()} == {"build.remap": "passed", "Grid.place": "passed"}, found
    assert found["build.remap"].guessed == "tiles_m=num_pid_m tiles_n=num_pid_n"


BUILDERS = """
import flydsl.expr as fx
from flydsl.dialects import arith, gpu
from mlir import _raw
import tilelang.language as T

def clipped(a, b):
    return fx.Int32(arith.minui(_raw(a), b))

def flydsl(num_pid_m, num_pid_n):
    bid = fx.Int32(gpu.block_id("x"))
    count = arith.muli(num_pid_m, num_pid_n)
    xcd = arith.remui(bid, arith.constant(8))
    low = arith.divui(count, arith.constant(8))
    pid = arith.addi(arith.addi(arith.muli(xcd, low), clipped(xcd, count % 8)), bid // 8)
    short = arith.cmpi(arith.CmpIPredicate.ult, count, arith.constant(16))
    pid = arith.select(short, fx.block_idx.x, pid)
    return divmod_of(pid, num_pid_n)

def divmod_of(a, b):
    return a // b, a % b

def tiled(bx, gm, gn):
    x = T.floormod(bx, 8)
    return T.if_then_else(gm * gn % 8 == 0, x * T.floordiv(gm * gn, 8) + T.floordiv(bx, 8), bx)

def shared_memory(row, col):
    return row, col ^ (row % 8) * 8 + col // 4
"""


def test_builders_of_index_arithmetic(written):
    found = results(written(BUILDERS, head=""))
    assert {name: one.status for name, one in found.items()} == {"flydsl": "passed", "tiled": "passed"}, found
    np.testing.assert_array_equal(
        order(written(BUILDERS, head=""), "flydsl", Grid((35,), (5, 7))),
        Swizzle.parse(family("contiguous")).permutation(Grid((35,), (5, 7)), 8),
    )


def test_one_tuple_or_another_and_counts_under_other_names(written):
    path = written(
        """
        @triton.jit
        def either(pid, num_m_tiles, num_n_tiles, GROUP_SIZE_M: tl.constexpr = 8):
            even = num_n_tiles % 2 == 0
            return (pid // num_n_tiles, pid % num_n_tiles) if even else back(pid, num_m_tiles, num_n_tiles)

        @triton.jit
        def back(pid, num_pid_m, num_pid_n):
            low = pid % num_pid_n
            return num_pid_m - 1 - pid // num_pid_n, num_pid_n - 1 - low

        @triton.jit
        def kernel(c, S, hidden, B: tl.constexpr):
            pid = tl.program_id(0)
            num_m_tiles = tl.cdiv(S, B)
            num_n_tiles = tl.cdiv(hidden, B)
            m_block, n_block = either(pid, num_m_tiles, num_n_tiles) if B > 3 else back(pid, num_m_tiles, num_n_tiles)
            def unused(x):
                return x
            tl.store(c + m_block * hidden + n_block, 1)
        """
    )
    found = results(path)
    assert {name: one.status for name, one in found.items()} == dict.fromkeys(("either", "back", "kernel"), "passed"), (
        found
    )
