"""Which loop is the main one, and was it pipelined? Read from Triton's intermediate languages."""

import importlib.util

import pytest

from swizzle_sim.capture.occupancy import compile_launch
from swizzle_sim.capture.occupancy_code import is_pipelined, loads_per_step
from swizzle_sim.workload.launch import Array, Launch

LOOP = """
#loc1 = loc("kernel.py":7:12)
#loc2 = loc("kernel.py":8:12)
#loc3 = loc("helper.py":3:4)
#loc12 = loc(callsite(#loc3 at #loc2))
#loc5 = loc("a"(#loc1))
#loc6 = loc("scale"(#loc12))
scf.for %k = %zero to %n step %one {
  %a = tt.load %x : tensor<64xf8> loc(#loc5)
  scf.if %some {
    %scale = tt.load %y : tensor<64xf32> loc(#loc6)
  }
}
"""
PIPELINED = """
#loc = loc("kernel.py":7:12)
#loc1 = loc("kernel.py":8:12)
#loc12 = loc("helper.py":3:4)
#loc13 = loc(callsite(#loc12 at #loc1))
#loc14 = loc("scale_3"(#loc13))
%a = ttg.async_copy_global_to_local %x : tensor<64xf8> loc(#loc)
scf.for %k = %zero to %n step %one {
  %scale_3 = tt.load %y : tensor<64xf32> loc(#loc14)
  %a_2 = ttg.async_copy_global_to_local %x : tensor<64xf8> loc(#loc)
}
"""
TABLES = """
scf.for %tile = %zero to %tiles step %one {
  %1 = tt.load %starts loc("kernel.py":2:4)
  %2 = tt.load %ends loc("kernel.py":3:4)
  %3 = tt.load %rows loc("kernel.py":4:4)
"""


def read(first, last):
    return loads_per_step(first, last), is_pipelined(first, last)


def test_a_loop_whose_loads_stand_in_front_of_it_too_is_pipelined():
    assert read(LOOP, PIPELINED) == (2, True)
    assert read(LOOP, LOOP) == (2, False)


def test_what_is_loaded_more_often_in_its_place_was_not_sent_ahead():
    twice = PIPELINED.replace("%a = ttg.async_copy_global_to_local %x : tensor<64xf8> loc(#loc)\n", "").replace(
        "%scale_3 = tt.load", "%other = tt.load %y : tensor<64xf32> loc(#loc14)\n  %scale_3 = tt.load"
    )
    assert read(LOOP, twice) == (2, False)
    others = '%b = tt.load %z loc("kernel.py":7:12)\n'  # in front of the loop before pipelining too
    assert read(others + LOOP, others * 2 + LOOP) == (2, False)


def test_the_main_loop_is_one_that_was_pipelined():
    assert read(TABLES + LOOP + "}\n", TABLES + PIPELINED + "}\n") == (2, True)
    assert read(TABLES + LOOP + "}\n", TABLES + LOOP + "}\n") == (3, False)


def test_a_tile_that_the_accelerator_fetches_ahead_is_a_load():
    first = LOOP.replace("tt.load %x", "tt.descriptor_load %x")
    last = PIPELINED.replace("ttg.async_copy_global_to_local", "ttng.async_tma_copy_global_to_local")
    assert read(first, last) == (2, True)


def test_without_locations_more_loads_than_before_are_taken_for_its_own():
    bare = "%9 = tt.load %x\nscf.for {\n%0 = tt.load %x\n%1 = tt.load %y\n}\n"
    assert read(bare, bare) == (2, False)
    assert read(bare, "%8 = tt.load %x\n" + bare) == (2, True)


TILES = """
import triton
import triton.language as tl


@triton.jit
def tiles(a, b, starts, ends, rows, c, K: tl.constexpr):
    at = tl.arange(0, 64)
    for tile in range(4):
        start, end = tl.load(starts + tile), tl.load(ends + tile)
        row = tl.load(rows + tile)
        total = tl.zeros((64, 64), tl.float32)
        for step in range(K // 64):
            depth = step * 64 + at
            left = tl.load(a + (row + at)[:, None] * K + depth[None, :])
            right = tl.load(b + depth[:, None] * 64 + at[None, :])
            total += tl.dot(left, right)
        tl.store(c + (start + at)[:, None] * 64 + at[None, :], total, mask=at[:, None] < end)
"""


@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="needs the triton extra")
@pytest.mark.parametrize("arch", ["sm_90a", "gfx942"])
def test_a_loop_over_tables_around_a_product_is_not_the_main_one(arch, tmp_path):
    path = tmp_path / "tiles.py"
    path.write_text(TILES, encoding="utf-8")
    arguments = {
        "a": Array(shape=(256, 512), dtype="fp16"),
        "b": Array(shape=(512, 64), dtype="fp16"),
        **{name: Array(shape=(4,), dtype="int32") for name in ("starts", "ends", "rows")},
        "c": Array(shape=(256, 64), dtype="fp32", role="out"),
    }
    launch = Launch(path=path, function="tiles", arguments=arguments, constexprs={"K": 512}, grid=(1,))
    found = compile_launch(launch, arch, use_cache=False)
    assert (found.loads_per_step, found.pipelined) == (2, True)


SECOND = """
import triton
import triton.language as tl


@triton.jit
def second(a, b, c, d, K: tl.constexpr):
    at = tl.arange(0, 64)
    total = tl.zeros((64, 64), tl.float32)
    for step in range(K // 64):
        depth = step * 64 + at
        left = tl.load(a + at[:, None] * K + depth[None, :])
        total += tl.dot(left, tl.load(b + depth[:, None] * 64 + at[None, :]))
    tl.store(c + at[:, None] * 64 + at[None, :], total)
    sums = tl.zeros((64,), tl.float32)
    for step in tl.range(K // 64, num_stages=1):
        for part in tl.static_range(PARTS):
            sums += tl.load(d + part * K + step * 64 + at)
    tl.store(c + at, sums)
"""


@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="needs the triton extra")
def test_a_pipelined_loops_code_is_timed_and_not_a_larger_one_behind_it(tmp_path):
    found = []
    for parts in (1, 6):
        path = tmp_path / f"second_{parts}.py"
        path.write_text(SECOND.replace("PARTS", str(parts)), encoding="utf-8")
        arguments = {
            "a": Array(shape=(64, 8192), dtype="fp16"),
            "b": Array(shape=(8192, 64), dtype="fp16"),
            "c": Array(shape=(64, 64), dtype="fp32", role="out"),
            "d": Array(shape=(6, 8192), dtype="fp32"),
        }
        launch = Launch(path=path, function="second", arguments=arguments, constexprs={"K": 8192}, grid=(1,))
        found.append(compile_launch(launch, "sm_90a", use_cache=False))
    assert [(one.loads_per_step, one.pipelined) for one in found] == [(2, True)] * 2
    assert found[0].step_cycles > 100 and found[1].step_cycles == pytest.approx(found[0].step_cycles, rel=0.05)
