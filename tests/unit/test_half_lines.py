"""Does an L2 that fetches half lines fetch what one works out by hand, and do the views of it agree?"""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import naive
from tests.machines import built_traces, cases, raw_traces, small_gpu
from xcd_model import IssueModel, TraceBuilder, prepare, replay_lockstep, replay_timed
from xcd_model.analysis.stack_distance import capacity_curve
from xcd_model.errors import ReplayError, SpecError
from xcd_model.replay.service_times import service_times_of
from xcd_model.replay.traffic import READ_MISSES, WRITE_MISSES

ONE_SET = {"xcds": 1, "cus": 1, "l2": (1, 2), "mall": None, "read": 32, "write": 32}


def reader(spans, *, writes=()):
    """One workgroup that reads spans (first byte, bytes) of one row, one instruction each, then writes others."""
    build = TraceBuilder(n_workgroups=1, line_bytes=128)
    x = build.array("x", rows=1, cols=1024, item_bytes=1)
    for first, n in spans:
        build.step(build.read(x, row=0, col=first, rows=1, cols=n))
    for first, n in writes:
        build.step(build.write(x, row=0, col=first, rows=1, cols=n))
    return build.trace()


# lines of 128 B, two ways: line k is bytes 128 k on
@pytest.mark.parametrize(
    ("spans", "halves", "lines"),
    [
        ([(0, 128)], 2, 1),  # a whole line is its two halves
        ([(0, 4)], 1, 1),
        ([(0, 4), (60, 4)], 1, 1),  # another sector of a half that is there
        ([(0, 4), (64, 4)], 2, 1),
        ([(0, 4), (64, 4), (0, 128)], 2, 1),
        ([(0, 128), (128, 128), (0, 64)], 4, 2),
        ([(0, 64), (128, 64), (64, 64), (256, 64), (128, 64)], 5, 4),  # the second half makes line 0 the latest
        ([(60, 8)], 2, 1),
        ([(124, 8)], 2, 2),
    ],
)
def test_fetches_by_hand(spans, halves, lines):
    trace = reader(spans)
    for fetches_halves, expected in ((True, halves), (False, lines)):
        plan = prepare(trace, small_gpu(**ONE_SET, halves=fetches_halves))
        for got in (replay_lockstep(plan, np.array([0]), workgroups_per_cu=1), timed(plan)):
            assert got.per_xcd[0, READ_MISSES] == expected
            assert got.hbm_read_bytes == expected * (64 if fetches_halves else 128)


def timed(plan):
    return replay_timed(plan, np.array([0]), workgroups_per_cu=1, issue=IssueModel(1, 0))


def test_what_is_written_is_there_and_the_other_half_is_not():
    build = TraceBuilder(n_workgroups=1, line_bytes=128)
    x = build.array("x", rows=1, cols=128, item_bytes=1)
    build.step(build.write(x, row=0, col=0, rows=1, cols=64))
    build.step(build.read(x, row=0, col=0, rows=1, cols=64))
    build.step(build.read(x, row=0, col=64, rows=1, cols=64))
    plan = prepare(build.trace(), small_gpu(**ONE_SET, halves=True))
    for got in (replay_lockstep(plan, np.array([0]), workgroups_per_cu=1), timed(plan)):
        assert (got.per_xcd[0, READ_MISSES], got.per_xcd[0, WRITE_MISSES]) == (1, 1)
        assert got.hbm_write_bytes == 64


def test_half_a_line_takes_half_the_time():
    whole, half = small_gpu(**ONE_SET), small_gpu(**ONE_SET, halves=True)
    assert service_times_of(whole).hbm == pytest.approx(2 * service_times_of(half).hbm, abs=1)
    assert service_times_of(whole).fabric == pytest.approx(2 * service_times_of(half).fabric, abs=1)
    assert service_times_of(whole).hbm_write == service_times_of(half).hbm_write


@settings(max_examples=60, deadline=None)
@given(case=cases(traces=built_traces), ways=st.integers(1, 5), sets=st.sampled_from([1, 2, 3, 4]))
def test_the_capacity_curve_is_what_each_cache_gives(case, ways, sets):
    """Whole lines and half lines, with an L1 and without: one pass knows what a replay of each size counts."""
    trace, order, machine, occupancy = case
    plain = {"index": "modulo", "index_channels": None, "index_interleave_bytes": None, "index_rows": None}
    size = sets * ways * machine.l2.line_bytes
    machine = dataclasses.replace(
        machine, l2=dataclasses.replace(machine.l2, channels=1, size_bytes=size, ways=ways, **plain), l2_partitions=None
    )
    plan = prepare(trace, machine)
    curve = capacity_curve(plan, order, workgroups_per_cu=occupancy, sets=[sets], depth=5)
    got = replay_lockstep(plan, order, workgroups_per_cu=occupancy)
    assert curve.l2_hit_rate[0, ways - 1] == pytest.approx(got.l2_hit_rate, abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(data=st.data(), line=st.sampled_from([64, 128, 256]))
def test_a_trace_in_half_lines_touches_the_same_bytes(data, line):
    trace = data.draw(raw_traces(line_bytes=line))
    halved = trace.with_lines_of(line // 2)
    assert trace.with_lines_of(line) is trace
    for instruction in range(trace.n_instructions):
        whole, half = (naive.touches(one, instruction)[0] for one in (trace, halved))
        assert sectors_of(whole, line) == sectors_of(half, line // 2)
    assert [t.base_line * t.n_lines for t in halved.tensors] == [4 * t.base_line * t.n_lines for t in trace.tensors]


def sectors_of(touched, line_bytes):
    """Numbers of the 32-byte sectors, in the order of their lines."""
    return [line * line_bytes // 32 + bit for line, bits in touched for bit in range(8) if bits >> bit & 1]


def test_other_caches_and_large_requests_are_refused():
    trace = reader([(0, 4)])
    with pytest.raises(ReplayError, match="fetches_halves"):
        prepare(trace, small_gpu(**ONE_SET | {"mall": (8, 2)}, halves=True))
    lone = small_gpu(**ONE_SET, l1=(2, 2))
    with pytest.raises(ReplayError, match="fetches_halves"):
        prepare(trace, dataclasses.replace(lone, l1=dataclasses.replace(lone.l1, fetches_halves=True)))
    with pytest.raises(SpecError, match="read_request_bytes = 128 must divide half of line_bytes = 64"):
        small_gpu(**ONE_SET | {"read": 128}, halves=True)
