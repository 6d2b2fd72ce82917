"""Are the lines of a trace the lines of its bytes, and are traces that cannot be true refused?"""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import naive
from tests.machines import built_traces, gemm_trace, raw_traces
from tests.naive_coalesce import in_lanes, shown, touched
from tests.naive_coalesce import passes as in_banks
from xcd_model import Tensor, TraceBuilder
from xcd_model.errors import TraceError
from xcd_model.trace.builder import TENSOR_ALIGN_BYTES, box_lines
from xcd_model.trace.coalesce import coalesce, lane_axes

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
    build = TraceBuilder(n_workgroups=3, line_bytes=128)  # an access model may have none of either
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


# ---- Do boxes and gathers touch the lines of their items, and are waves' requests those of their lanes?
@st.composite
def boxes(draw):
    """An array of one to three axes, row-major, padded or transposed, and a box for each of three workgroups."""
    axes = draw(st.integers(1, 3))
    shape = [draw(st.integers(1, 12)) for _ in range(axes - 1)] + [draw(st.integers(1, 40))]
    item = draw(st.sampled_from([1, 2, 4, 8, 16]))
    order = draw(st.permutations(range(axes)))
    strides, step = [0] * axes, 1
    for axis in order:
        strides[axis] = step
        step = step * shape[axis] + draw(st.sampled_from([0, 0, 8, 5]))
    sides = [1, 2, 3, 4, 8, 16] if axes > 1 else [1, 7, 64, 256, 1024]
    at = [[draw(st.integers(-6, side)) for side in shape] for _ in range(3)]
    size = [draw(st.sampled_from([*sides, 32])) for _ in range(axes)]
    return shape, strides, item, at, size


@settings(max_examples=200, deadline=None)
@given(case=boxes(), line_bytes=st.sampled_from(LINES), write=st.booleans())
def test_a_box_is_its_items(case, line_bytes, write):
    shape, strides, item, at, size = case
    build = TraceBuilder(n_workgroups=3, line_bytes=line_bytes)
    before = build.place("before", shape=(1,), item_bytes=1)
    x = build.place("x", shape=shape, item_bytes=item, strides=strides)
    build.step(build.read_box(before, at=(0,), size=(1,)))
    put = build.write_box if write else build.read_box
    build.step(put(x, at=[np.array(axis) for axis in zip(*at, strict=True)], size=size))
    trace = build.trace()
    for w in range(3):
        addresses = []
        for tile in np.ndindex(*size):
            index = [a + t for a, t in zip(at[w], tile, strict=True)]
            inside = all(0 <= i < n for i, n in zip(index, shape, strict=True))
            offset = sum(i * s for i, s in zip(index, strides, strict=True)) * item
            addresses.append(TENSOR_ALIGN_BYTES + offset if inside else None)
        steps = [stride * item for stride in strides]
        in_order = in_lanes(addresses, size, steps, item)
        expected = touched(in_order, item, line_bytes)
        span = range(trace.start[w] + 1, trace.start[w + 1])
        assert [shown(trace, i) for i in span] == ([expected] if expected else [])
        if line_bytes % 128 == 0:  # else a template does not know where in a line of banks it begins
            assert [trace.l1_passes[trace.template[i]] for i in span] == [in_banks(in_order, item)] * bool(expected)
        assert all(trace.is_write[trace.template[i]] == write for i in span)


@settings(max_examples=200, deadline=None)
@given(data=st.data(), item=st.sampled_from([1, 2, 4, 8]), line_bytes=st.sampled_from(LINES))
def test_gathers_are_their_items(data, item, line_bytes):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    n_items, limit = data.draw(st.sampled_from([1, 3, 64, 200, 1024])), int(rng.integers(1, 3000))
    index = rng.integers(0, limit, (2, 3, n_items))
    for w, trip in np.ndindex(2, 3):  # some scattered, some runs, some runs broken once
        if rng.random() < 0.6:
            index[w, trip] = np.minimum(rng.integers(0, limit) + np.arange(n_items), limit - 1)
    index[rng.random(index.shape) < data.draw(st.sampled_from([0, 0.3, 1]))] = -1
    build = TraceBuilder(n_workgroups=2, line_bytes=line_bytes)
    x = build.place("x", shape=(limit,), item_bytes=item)
    build.step(build.gather(x, index, write=True))
    build.step(build.read_box(x, at=(0,), size=(1,)))
    trace = build.trace()
    for w in range(2):
        plain = [[None if i < 0 else i * item for i in index[w, trip].tolist()] for trip in range(3)]
        expected = [touched(addresses, item, line_bytes) for addresses in plain]
        span = range(trace.start[w], trace.start[w + 1] - 1)
        assert [shown(trace, i) for i in span] == [e for e in expected if e]
        if line_bytes % 128 == 0:
            passes = [in_banks(addresses, item) for addresses, e in zip(plain, expected, strict=True) if e]
            assert trace.l1_passes[trace.template[span.start : span.stop]].tolist() == passes


@settings(max_examples=200, deadline=None)
@given(
    phase=st.integers(0, 15),
    rows=st.integers(1, 70),
    cols=st.sampled_from([8, 16, 64, 512, 4096]),
    pad=st.sampled_from([0, 0, 8, 33]),
    item=st.sampled_from([1, 2, 4]),
    data=st.data(),
)
def test_rows_at_once_are_items_one_by_one(phase, rows, cols, pad, item, data):
    """The fast way over contiguous rows gives what `coalesce` gives of every address."""
    skip = data.draw(st.integers(0, rows - 1)), data.draw(st.integers(0, cols - 1))
    kept = data.draw(st.integers(1, rows - skip[0])), data.draw(st.integers(1, cols - skip[1]))
    strides = ((cols + pad) * item, item)
    address = np.full((rows, cols), -1, np.int64)
    r, c = np.arange(kept[0])[:, None], np.arange(kept[1])[None, :]
    address[skip[0] : skip[0] + kept[0], skip[1] : skip[1] + kept[1]] = phase * item + r * strides[0] + c * strides[1]
    expected = coalesce(address.reshape(-1), item, 128)
    got = box_lines(
        phase=phase * item, skip=skip, kept=kept, size=(rows, cols), strides=strides, item_bytes=item, line_bytes=128
    )
    assert [part.tolist() for part in got] == [part.tolist() for part in expected]


@pytest.mark.parametrize("item_bytes", [3, 6, 12, 24, 32])
def test_items_that_no_instruction_loads_take_a_line_a_pass(item_bytes):
    build = TraceBuilder(n_workgroups=1, line_bytes=128)
    x = build.array("x", rows=1, cols=64, item_bytes=item_bytes)
    build.step(build.read(x, row=0, col=0, rows=1, cols=64))
    trace = build.trace()
    assert trace.l1_passes.tolist() == trace.requests_of_waves.tolist() == [trace.wave_requests.sum()]


def test_a_whole_tile_asks_for_each_line_once_and_a_narrow_one_more_often():
    """fp16: a wave takes 512 items, so 4 rows of 128; 32 rows of 32 items are two waves, half a line each."""
    build = TraceBuilder(n_workgroups=1, line_bytes=128)
    x = build.array("x", rows=64, cols=64, item_bytes=2)
    t = build.place("t", shape=(64, 64), item_bytes=2, strides=(1, 64))
    apart = build.place("apart", shape=(64, 64), item_bytes=2, strides=(2, 128))
    build.step(
        build.read(x, row=0, col=0, rows=32, cols=32),
        build.read_box(t, at=(0, 0), size=(64, 64)),
        build.read_box(apart, at=(0, 0), size=(64, 64)),
    )
    trace = build.trace()
    ours = trace.wave_requests.tolist()
    assert ours[:32] == [1] * 32
    assert ours[32:96] == [1] * 64  # lanes along the columns, which are contiguous
    assert ours[96:] == [32] * 128  # no axis is contiguous: a wave takes a row of 64 lines, and 32 rows share each line


@settings(max_examples=100, deadline=None)
@given(data=st.data(), item=st.sampled_from([1, 2, 4, 8]))
def test_a_transposed_tile_of_a_transposed_array_is_the_same_instruction(data, item):
    """What B[k, n] of B and B^T[n, k] of its transpose touch, and in which order, does not depend on the spelling."""
    axes = data.draw(st.integers(2, 3))
    size = [data.draw(st.sampled_from([1, 2, 8, 16, 64] if axis < axes - 1 else [2, 8, 64])) for axis in range(axes)]
    shape = [side + data.draw(st.integers(1, 9)) for side in size]
    at = [data.draw(st.integers(-3, n)) for n in shape]
    order = list(range(axes - 1))
    order.insert(data.draw(st.integers(0, axes - 1)), axes - 1)  # the contiguous axis anywhere
    traces = []
    strides = np.cumprod([1, *shape[:0:-1]])[::-1]
    for spelling in (range(axes), order):
        build = TraceBuilder(n_workgroups=1, line_bytes=128)
        x = build.place(
            "x", shape=[shape[a] for a in spelling], item_bytes=item, strides=[strides[a] for a in spelling]
        )
        build.step(build.read_box(x, at=[at[a] for a in spelling], size=[size[a] for a in spelling]))
        build.step(build.read_box(x, at=[0] * axes, size=[1] * axes))
        traces.append(build.trace())
    one, other = ([shown(trace, i) for i in range(trace.start[-1])] for trace in traces)
    assert one == other


def test_pointers_without_an_order_of_strides_have_lanes_along_their_contiguity():
    """A tile of 8 x 16 pointers whose columns are runs of 4: axis 0 is the faster one."""
    row, col = np.arange(8)[:, None], np.arange(16)[None, :]
    assert lane_axes(row % 4 * 2 + row // 4 * 512 + col * 64, 2) == (1, 0)
    assert lane_axes(row * 64 + col * 2, 2) == (0, 1)
    assert lane_axes(row * 64 + col * 64, 2) == (0, 1)  # none contiguous: as written
    assert lane_axes(np.arange(64) * 2, 2) == (0,)
    assert lane_axes(np.array(128), 2) == ()


@pytest.mark.parametrize(
    ("shift", "at_once", "each"),
    [(0, None, 1), (4, None, 1), (2, None, 2), (1, None, 4), (3, None, 4), (0, 1, 4), (4, 2, 2), (1, 2, 4)],
)
def test_a_shifted_tile_is_loaded_item_by_item(shift, at_once, each):
    """fp32, four items a lane: one instruction where they begin on 16 bytes, two on 8, four on 4; or as told."""
    build = TraceBuilder(n_workgroups=1, line_bytes=128)
    x = build.array("x", rows=8, cols=128, item_bytes=4)
    build.step(build.read(x, row=0, col=32 + shift, rows=8, cols=32, at_once=at_once))
    trace = build.trace()
    items = [(row * 128 + 32 + shift + col) * 4 for row in range(8) for col in range(32)]
    assert shown(trace, 0) == touched(items, 4, 128, at_once or 4)
    assert max(trace.wave_requests) == each


def test_large_grids_are_built_in_seconds_with_few_templates():
    n = 1 << 18
    build = TraceBuilder(n_workgroups=n, line_bytes=128)
    x = build.array("x", rows=512 * 32, cols=512 * 32, item_bytes=2)
    m, k = np.divmod(np.arange(n), 512)
    for dr, dc in ((0, 0), (-1, 0), (0, -1)):
        build.step(build.read(x, row=m * 32 + dr, col=k * 32 + dc, rows=32, cols=32))
    assert (
        build.trace().is_write.size == 2 + 2 + 3
    )  # two phases, two clipped above; two phases and a clipped one to the left


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda b, x: b.read_box(x, at=(0,), size=(1, 1)), "1 places of 2 sides; the array has 2 axes"),
        (lambda b, x: b.read_box(x, at=(0, 0), size=(1, -1)), "negative extent"),
        (lambda b, x: b.place("y", shape=(), item_bytes=2), "array y: shape"),
        (lambda b, x: b.place("y", shape=(2, 0), item_bytes=2), "array y: shape"),
        (lambda b, x: b.place("y", shape=(2, 2), item_bytes=2, strides=(1,)), "one stride for each axis"),
        (lambda b, x: b.place("y", shape=(2, 2), item_bytes=2, strides=(-2, 1)), "no stride below 0"),
        (lambda b, x: b.read(x, row=0, col=0, rows=3, cols=4, at_once=0), "at_once = 0: a power of two"),
        (lambda b, x: b.read(x, row=0, col=0, rows=3, cols=4, at_once=3), "at_once = 3: a power of two"),
        (lambda b, x: b.gather(x, np.zeros(3)), "a gather of shape"),
        (lambda b, x: b.gather(x, np.zeros((1, 3))), "a gather of shape"),
        (lambda b, x: b.gather(x, np.full((2, 3), 12)), "a gather reads item 12; it has 12"),
        (lambda b, x: b.gather(b.place("o", shape=(4,), item_bytes=3), np.full((2, 3), 0)), "do not divide a sector"),
    ],
)
def test_boxes_and_gathers_that_make_no_sense_are_refused(call, says):
    build = TraceBuilder(n_workgroups=2, line_bytes=128)
    x = build.array("x", rows=3, cols=4, item_bytes=2)
    with pytest.raises(TraceError, match=says):
        call(build, x)


def test_stores_together_are_one_instruction_that_touches_lines_again():
    """Two rows of two lines, 64 bytes at a time: each line is stored to twice, by one instruction."""
    build = TraceBuilder(n_workgroups=3, line_bytes=128)
    x = build.array("x", rows=6, cols=128, item_bytes=2)
    row = 2 * np.arange(3)
    quarters = [build.write(x, row=row, col=col, rows=2, cols=32) for col in (0, 32, 64, 96)]
    build.step(build.together(*quarters))
    trace = build.trace()
    assert (trace.n_instructions, trace.n_touches) == (3, 3 * 8)
    for workgroup in range(3):
        lines = [4 * workgroup + line for line in (0, 2, 0, 2, 1, 3, 1, 3)]
        assert naive.touches(trace, workgroup) == (list(zip(lines, [3, 3, 12, 12] * 2, strict=True)), True)


def test_only_stores_to_one_array_go_together():
    build = TraceBuilder(n_workgroups=2, line_bytes=128)
    x, y = (build.array(name, rows=4, cols=64, item_bytes=2) for name in "xy")
    whole = {"row": np.arange(2), "col": 0, "rows": 1, "cols": 64}
    store = build.write(x, **whole)
    masked = build.write(x, **(whole | {"row": np.array([0, 9])}))
    twice = build.write(x, **(whole | {"row": np.zeros((2, 2), int)}))
    for other in (build.write(y, **whole), build.read(x, **whole), masked, twice):
        with pytest.raises(TraceError, match="together: stores to one array"):
            build.together(store, other)
    with pytest.raises(TraceError, match="together: stores to one array"):
        build.together(build.read(x, **whole))


@pytest.mark.parametrize("row", [1.999, "1", True, 2**63, np.array([0, 1, np.nan, 2]), np.arange(3), np.arange(5)])
def test_a_place_that_is_no_integer_or_not_one_for_each_workgroup_is_refused(row):
    build = TraceBuilder(n_workgroups=4, line_bytes=128)
    matrix = build.array("x", rows=8, cols=64, item_bytes=2)
    with pytest.raises(TraceError, match=r"tensor x: (places and sides of a box|a box of [35] entries)"):
        build.read(matrix, row=row, col=0, rows=1, cols=64)
    with pytest.raises(TraceError, match=r"array y: .* no integers"):
        build.array("y", rows=2.5, cols=64, item_bytes=2)
