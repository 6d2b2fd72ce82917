"""Is an uncoalesced load named, and no other?"""

import dataclasses

import numpy as np
import pytest

from swizzle_sim.pricing.access_patterns import pitch_note, uncoalesced
from swizzle_sim.workload.kernels import kernel
from xcd_model import TraceBuilder, gpu

LINE = 128
TILE = 64


def trace_of(strides, size=(TILE, TILE), item_bytes=2):
    """One tile of B under these strides [items], and one of a row-major A."""
    build = TraceBuilder(n_workgroups=2, line_bytes=LINE)
    a = build.array("A", rows=256, cols=256, item_bytes=2)
    b = build.place("B", shape=(256, 256), item_bytes=item_bytes, strides=strides)
    at = np.array([0, 1])
    build.step(
        build.read(a, row=at * TILE, col=0, rows=TILE, cols=TILE), build.read_box(b, at=(at * TILE, 0), size=size)
    )
    return build.trace()


@pytest.mark.parametrize("strides", [(256, 1), (1, 256), (1, 8192), (8192, 1)])
def test_lanes_along_the_contiguous_axis_are_not_named(strides):
    assert uncoalesced(trace_of(strides)) == []


def test_lanes_far_apart_are_named_with_their_stride():
    (found,) = uncoalesced(trace_of((2, 4096)))
    assert (found.tensor, found.is_write, found.stride_bytes) == ("B", False, 8192)
    assert (found.lines_a_wave, found.fewest_lines_a_wave) == (64, 1)
    assert found.requests == 2 * TILE * TILE
    assert found.fewest == 2 * TILE * TILE * 2 // LINE
    words = str(found)
    assert words.startswith("uncoalesced load of B: neighbouring lanes lie 8,192 B apart")
    assert "touches 64 lines instead of 1" in words


@pytest.mark.parametrize(("columns", "named"), [(8, True), (16, True), (32, False), (64, False)])
def test_short_rows_are_named_up_to_a_quarter_of_a_line(columns, named):
    assert bool(uncoalesced(trace_of((256, 1), size=(TILE, columns)))) == named


def test_a_line_of_64_bytes_has_the_same_answer():
    halves = trace_of((2, 4096)).with_lines_of(64)
    assert [one.tensor for one in uncoalesced(halves)] == ["B"]


def test_nothing_is_said_where_lanes_are_not_known():
    trace = trace_of((2, 4096))
    assert uncoalesced(dataclasses.replace(trace, waves=np.zeros((0, 3), np.int64))) == []


@pytest.mark.parametrize("name", ["fused_elementwise", "softmax", "stencil_2d", "conv_2d", "layer_norm"])
def test_no_kernel_of_the_suite_is_named(name):
    """Loads item by item, of rows, of windows, and in blocks; all against compiled code in tests/capture."""
    assert uncoalesced(kernel(name).build_trace(LINE)) == []


@pytest.mark.parametrize(("cols", "pitches"), [(2048, {"A": 4096}), (1024, {}), (3072, {}), (8192, {"A": 16384})])
def test_rows_a_power_of_two_apart_are_named(cols, pitches):
    build = TraceBuilder(n_workgroups=2, line_bytes=LINE)
    a = build.array("A", rows=256, cols=cols, item_bytes=2)
    x = build.array("x", rows=1, cols=1 << 16, item_bytes=2)  # one row: no distance
    at = np.array([0, 1])
    build.step(build.read(a, row=at * TILE, col=0, rows=TILE, cols=TILE), build.read(x, row=0, col=at, rows=1, cols=9))
    trace = build.trace()
    assert trace.power_of_two_pitches == pitches
    assert "A 4 KiB" in pitch_note({"A": 4096}, gpu("mi300x")) and pitch_note({"A": 4096}, gpu("h200")) == ""
