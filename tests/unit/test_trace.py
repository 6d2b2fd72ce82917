"""Are the lines of a trace the lines of its bytes, and are traces that cannot be true refused?"""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import naive
from tests.machines import built_traces, gemm_trace, raw_traces
from xcd_model import Tensor, TraceBuilder
from xcd_model.errors import TraceError
from xcd_model.trace.builder import TENSOR_ALIGN_BYTES

LINES = [32, 64, 128, 256]


@st.composite
def rectangles(draw):
    """An array behind another one, and rectangles of it for three workgroups, some of them beyond its edge."""
    shape = draw(st.tuples(st.integers(1, 9), st.integers(1, 60)))
    item = draw(st.integers(1, 9))
    pitch = shape[1] * item + draw(st.sampled_from([0, 1, 30, 128, 200]))
    rows, cols = (st.lists(st.integers(0, high), min_size=3, max_size=3) for high in (shape[0] + 1, shape[1] + 1))
    extents = (st.lists(st.integers(0, high), min_size=3, max_size=3) for high in (6, 50))
    return shape, item, pitch, *(draw(s) for s in (rows, cols, *extents))


@settings(max_examples=300, deadline=None)
@given(case=rectangles(), line_bytes=st.sampled_from(LINES), write=st.booleans())
def test_a_rectangle_is_its_bytes(case, line_bytes, write):
    shape, item, pitch, row, col, rows, cols = case
    build = TraceBuilder(n_workgroups=3, line_bytes=line_bytes)
    before = build.array("before", rows=1, cols=1, item_bytes=1)
    array = build.array("x", rows=shape[0], cols=shape[1], item_bytes=item, pitch_bytes=pitch)
    build.step(build.read(before, row=0, col=0, rows=1, cols=1))  # so that nobody touches nothing
    put = build.write if write else build.read
    build.step(put(array, row=np.array(row), col=np.array(col), rows=np.array(rows), cols=np.array(cols)))
    trace = build.trace()
    for w in range(3):
        expected = naive.rectangle(
            base_bytes=TENSOR_ALIGN_BYTES,
            pitch_bytes=pitch,
            item_bytes=item,
            shape=shape,
            row=row[w],
            col=col[w],
            rows=rows[w],
            cols=cols[w],
            line_bytes=line_bytes,
        )
        span = range(trace.start[w] + 1, trace.start[w + 1])
        assert len(span) == (1 if expected else 0)
        for i in span:
            lines, is_write = naive.touches(trace, i)
            assert [line for line, _ in lines] == list(expected)  # each once, in the order touched
            assert [{b for b in range(8) if bits >> b & 1} for _, bits in lines] == list(expected.values())
            assert is_write == write


@settings(max_examples=100, deadline=None)
@given(data=st.data(), line_bytes=st.sampled_from(LINES), strategy=st.sampled_from([built_traces, raw_traces]))
def test_requests_and_dirty_pieces_are_counted_sector_by_sector(data, line_bytes, strategy):
    trace = data.draw(strategy(line_bytes=line_bytes))
    read, write = (data.draw(st.sampled_from([b for b in LINES if b <= line_bytes])) for _ in range(2))
    requests = trace.requests_per_template(read, write)
    dirty = trace.written_pieces(write)
    for t in range(trace.is_write.size):
        entries = range(trace.rel_start[t], trace.rel_start[t + 1])
        request = write if trace.is_write[t] else read
        assert requests[t] == sum(len(naive.pieces(trace.sectors[e], request)) for e in entries)
        for e in entries:
            pieces = naive.pieces(trace.sectors[e], write) if trace.is_write[t] else set()
            assert {b for b in range(8) if dirty[e] >> b & 1} == pieces
    touched = sum(len(naive.touches(trace, i)[0]) for i in range(trace.n_instructions))
    assert trace.n_touches == touched


def test_steps_interleave_their_accesses_trip_by_trip():
    build = TraceBuilder(n_workgroups=2, line_bytes=128)
    x, y = (build.array(name, rows=2, cols=192, item_bytes=2) for name in "xy")
    trips = np.array([[0, 64, 128]])
    build.step(
        build.read(x, row=np.array([[0], [1]]), col=trips, rows=1, cols=64),
        build.read(y, row=0, col=trips, rows=1, cols=64),
    )
    build.step(build.write(y, row=np.array([0, 1]), col=0, rows=1, cols=192))
    trace = build.trace()
    y_at = TENSOR_ALIGN_BYTES // 128
    lines = [[line for line, _ in naive.touches(trace, i)[0]] for i in range(trace.n_instructions)]
    assert trace.start.tolist() == [0, 7, 14]
    assert lines[:7] == [[0], [y_at], [1], [y_at + 1], [2], [y_at + 2], [y_at, y_at + 1, y_at + 2]]
    assert lines[7:] == [[3], [y_at], [4], [y_at + 1], [5], [y_at + 2], [y_at + 3, y_at + 4, y_at + 5]]


def test_tensors_lie_apart_on_aligned_lines():
    trace = gemm_trace(64, 64, 64, 16, 16, 16)
    assert [t.base_line * 128 for t in trace.tensors] == [i * TENSOR_ALIGN_BYTES for i in range(3)]
    assert [(t.name, t.n_lines, t.size_bytes) for t in trace.tensors] == [(n, 64, 8192) for n in "ABC"]


TRACE = gemm_trace(32, 32, 32, 16, 16, 16)  # 4 workgroups of 5 instructions


def test_a_line_outside_its_tensor_names_workgroup_and_instruction():
    base = TRACE.base.copy()
    base[2 * 5 + 3] += 16
    with pytest.raises(TraceError, match=r"workgroup 2, instruction 3 touches lines .* outside tensor B \(lines 16384"):
        dataclasses.replace(TRACE, base=base)
    base[2 * 5 + 3] -= 40
    with pytest.raises(TraceError, match="workgroup 2, instruction 3"):
        dataclasses.replace(TRACE, base=base)


def test_a_trace_may_have_workgroups_that_touch_nothing_but_not_only_those():
    start = TRACE.start.copy()
    start[3] = start[2]
    assert dataclasses.replace(TRACE, start=start).n_workgroups == TRACE.n_workgroups
    start[3] -= 1
    with pytest.raises(TraceError, match="workgroup 2 ends before it begins"):
        dataclasses.replace(TRACE, start=start)
    none = {name: getattr(TRACE, name)[:0] for name in ("base", "template")}
    with pytest.raises(TraceError, match="no workgroup touches anything"):
        dataclasses.replace(TRACE, start=np.zeros(3, np.int64), **none)


def test_an_access_model_with_an_empty_workgroup_is_refused():
    build = TraceBuilder(n_workgroups=3, line_bytes=128)
    x = build.array("x", rows=2, cols=64, item_bytes=2)
    build.step(build.read(x, row=np.arange(3), col=0, rows=1, cols=64))
    with pytest.raises(TraceError, match="workgroup 2 touches nothing"):
        build.trace()


def test_arrays_that_do_not_fit_together_are_refused():
    overlapping = (TRACE.tensors[0], Tensor("B", 5, 16, 2048), TRACE.tensors[2])
    below = (Tensor("A", -1, 17, 2048), *TRACE.tensors[1:])
    for change, says in [
        ({"start": TRACE.start[:-1]}, "ends at the 20 instructions"),
        ({"start": TRACE.start[:1]}, "ends at the 20 instructions"),
        ({"start": TRACE.start + 1}, "begins at 0"),
        ({"template": TRACE.template[:-1]}, "one base and one template"),
        ({"template": TRACE.template + 99}, "templates"),
        ({"template": TRACE.template - 99}, "templates"),
        ({"rel": TRACE.rel[:-1]}, "rel_start ends at"),
        ({"sectors": TRACE.sectors[:-1]}, "rel_start ends at"),
        ({"is_write": TRACE.is_write[:-1]}, "is_write"),
        ({"tensor": TRACE.tensor + 9}, "there are 3 tensors"),
        ({"sectors": TRACE.sectors * 0}, "has a bit set"),
        ({"sectors": TRACE.sectors | 16}, "none beyond its 128 B"),
        ({"rel_start": TRACE.rel_start * 0}, "every template has a line"),
        ({"tensors": overlapping}, "A and B overlap"),
        ({"tensors": below}, "begins at line -1"),
    ]:
        with pytest.raises(TraceError, match=says):
            dataclasses.replace(TRACE, **change)


@pytest.mark.parametrize("line_bytes", [0, 16, 96, 100, 512, -128])
def test_line_sizes_that_sectors_cannot_hold_are_refused(line_bytes):
    with pytest.raises(TraceError, match=f"line_bytes = {line_bytes}"):
        TraceBuilder(n_workgroups=1, line_bytes=line_bytes)


def test_bad_builder_arguments_are_refused():
    with pytest.raises(TraceError, match="n_workgroups = 0"):
        TraceBuilder(n_workgroups=0, line_bytes=128)
    build = TraceBuilder(n_workgroups=2, line_bytes=128)
    with pytest.raises(TraceError, match="no workgroup touches anything"):
        build.trace()
    for bad in ({"rows": 0}, {"cols": -1}, {"item_bytes": 0}, {"pitch_bytes": 127}):
        with pytest.raises(TraceError, match="array x"):
            build.array("x", **({"rows": 2, "cols": 64, "item_bytes": 2} | bad))
    x = build.array("x", rows=2, cols=64, item_bytes=2)
    with pytest.raises(TraceError, match="tensor x: a rectangle has a negative extent"):
        build.read(x, row=0, col=0, rows=1, cols=-1)
    build.step(build.read(x, row=5, col=0, rows=1, cols=1))
    with pytest.raises(TraceError, match="no workgroup touches anything"):
        build.trace()
