"""Does an L1 keep from the L2 what it holds, and do its two replays count the same?"""

import dataclasses
import importlib

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.workload.kernels import kernel
from tests import naive
from tests.machines import cases, gemm_trace, raw_traces, sides, small_gpu, tiled_traces
from xcd_model import (
    Gpu,
    IssueModel,
    Resources,
    TraceBuilder,
    gpu,
    gpu_names,
    prepare,
    replay_lockstep,
    replay_timed,
    workgroups_per_cu,
)
from xcd_model.cache.packed import BY_LINE, BY_TILE
from xcd_model.errors import ReplayError, SpecError, TraceError
from xcd_model.fast import symmetry as fast
from xcd_model.nvidia.rates import l1_after_shared_memory
from xcd_model.replay.service_times import service_times_of
from xcd_model.replay.traffic import L1_HITS, L1_REQUESTS, READ_MISSES, READ_REQUESTS, WRITE_MISSES
from xcd_model.spec.nvidia import L2Partitions


@settings(max_examples=60, deadline=None)
@given(case=cases(traces=tiled_traces))
def test_by_tile_counts_as_by_line(case):
    trace, order, machine, occupancy = case
    assume(machine.l1 is not None)
    by_tile = prepare(trace, machine, symmetry=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fast, "find_tiles", lambda trace: None)
        by_line = prepare(trace, machine, symmetry=False)
    assert (by_tile.machine.l1_mode, by_line.machine.l1_mode) == (BY_TILE, BY_LINE)
    tile, line = (replay_lockstep(plan, order, workgroups_per_cu=occupancy) for plan in (by_tile, by_line))
    np.testing.assert_array_equal(tile.timeline, line.timeline)


@pytest.mark.parametrize("occupancy", [1, 2])
def test_ragged_tiles_that_fill_an_l1_in_turn_are_those_of_the_naive_replay(occupancy):
    """Of two workgroups on a CU some tiles follow one of their own tensor; those of the edge fill no L1."""
    trace = gemm_trace(80, 72, 100, 32, 32, 16, more_bytes=(72, 24, 8))
    machine = small_gpu(xcds=2, cus=2, l1=(4, 8), l2=(16, 4), mall=None)
    plan, order = prepare(trace, machine), np.arange(trace.n_workgroups)
    fills = plan.stream.fills_l1[~plan.stream.is_write]
    assert plan.machine.l1_mode == BY_LINE and fills.any() and not fills.all()
    expected, _ = naive.replay(trace, order, machine, occupancy)
    got = replay_lockstep(plan, order, workgroups_per_cu=occupancy)
    np.testing.assert_array_equal(got.timeline, expected)
    assert 0 < got.total(L1_HITS) < got.total(L1_REQUESTS)


def rows_twice(cols):
    """One workgroup reads a row of ``cols`` lines twice."""
    build = TraceBuilder(n_workgroups=1, line_bytes=128)
    x = build.array("x", rows=1, cols=64 * cols, item_bytes=2)
    access = build.read(x, row=np.array([0]), col=0, rows=1, cols=64 * cols)
    build.step(access, access)
    return build.trace()


@pytest.mark.parametrize(("lines", "l2_reads"), [(256, 256), (257, 256 + 1 + 65), (320, 640)])
def test_a_row_is_kept_while_its_sets_hold_it(lines, l2_reads):
    """MI300X: 4 sets of 64 ways. Of 257 lines one set gets 65, which LRU loses all; the others keep 64 each."""
    got = replay_lockstep(prepare(rows_twice(lines), gpu("mi300x")), np.array([0]), workgroups_per_cu=1)
    assert got.total(L1_REQUESTS) == 2 * lines
    assert got.total(READ_REQUESTS) == got.total(L1_REQUESTS) - got.total(L1_HITS) == l2_reads


def test_a_second_wave_hits_what_the_first_brings():
    """A line that three waves ask for goes to the L2 once."""
    trace = rows_twice(4)
    thrice = dataclasses.replace(trace, wave_requests=np.full(4, 3, np.uint16))
    got = replay_lockstep(prepare(thrice, gpu("mi300x")), np.array([0]), workgroups_per_cu=1)
    assert (got.total(L1_REQUESTS), got.total(L1_HITS), got.total(READ_REQUESTS)) == (24, 20, 4)
    assert got.l1_hit_rate == pytest.approx(20 / 24)


def test_the_port_of_an_l1_of_banks_takes_passes_and_that_of_lines_takes_lines():
    """Rows of 64 B, half of them on each half of the banks: 32 lines in four groups of eight lanes, two passes each."""
    build = TraceBuilder(n_workgroups=1, line_bytes=128)
    x = build.array("x", rows=32, cols=32, item_bytes=2, pitch_bytes=192)
    build.step(build.read(x, row=np.array([0]), col=0, rows=32, cols=32))
    took = {}
    for by_bank in (False, True):
        machine = small_gpu(l1=(64, 4), mall=None, by_bank=by_bank)
        plan = prepare(build.trace(), machine)
        got = replay_timed(plan, np.array([0]), workgroups_per_cu=1, issue=IssueModel(1, 0))
        assert got.total(L1_REQUESTS) == 32
        took[by_bank] = got.time_fs
    assert took[False] - took[True] == 16 * service_times_of(machine).l1
    with pytest.raises(SpecError, match="its banks are 128 B wide, and line_bytes = 64"):
        small_gpu(l1=(64, 4), mall=None, line=64, read=64, write=64, by_bank=True)


def test_passes_that_are_no_counts_or_leave_64_bits_are_refused():
    """A trace file may say anything."""
    trace = rows_twice(4)
    for waves in (trace.waves - 100, trace.waves.astype(float), trace.waves[:, :3]):
        with pytest.raises(TraceError, match="four counts for each template"):
            dataclasses.replace(trace, waves=waves)
    endless = prepare(dataclasses.replace(trace, waves=trace.waves + 2**60), gpu("h200"))
    with pytest.raises(ReplayError, match="overflows int64"):
        replay_timed(endless, np.array([0]), workgroups_per_cu=1, issue=IssueModel(1, 0))


# ---- Does an L1 that shares its array with LDS have what the driver leaves it, and every other L1 all it has?
KB = 1024


def taken(threads, vgprs, lds_bytes):
    """LDS that the rule sets aside on an H200 [bytes]."""
    resources = Resources(
        threads=threads, vgprs=vgprs, lds_bytes=lds_bytes, instructions_in_flight=1, source="made for this test"
    )
    return gpu("h200").l1.size_bytes - l1_after_shared_memory(resources, gpu("h200")).l1.size_bytes


@pytest.mark.parametrize(
    ("threads", "vgprs", "lds_kb", "expected_kb"),
    [
        (128, 96, 1, 32),  # nothing but the system's kilobyte: room for 32 workgroups
        (128, 32, 5, 132),  # 16 fit, room for twice as many would be 160, over half of all
        (128, 32, 17, 228),  # 16 would fit without: as many as do fit, 13
        (256, 186, 145, 164),  # one alone
        (1024, 16, 8, 16),  # two of the largest
    ],
)
def test_by_hand(threads, vgprs, lds_kb, expected_kb):
    assert taken(threads, vgprs, lds_kb * KB) == expected_kb * KB


def test_what_is_left_keeps_its_sets_and_is_not_divided_twice():
    h200 = gpu("h200")
    resources = Resources(threads=128, vgprs=96, lds_bytes=KB, instructions_in_flight=1, source="made for this test")
    left = l1_after_shared_memory(resources, h200)
    assert (left.l1.size_bytes, left.l1.ways, left.l1.sets) == (224 * KB, 56, h200.l1.sets)
    assert l1_after_shared_memory(resources, left) is left
    assert workgroups_per_cu(resources, left) == workgroups_per_cu(resources, h200)


def test_amds_l1_is_an_array_of_its_own():
    resources = Resources(threads=256, vgprs=128, lds_bytes=64 * KB, instructions_in_flight=1, source="made here")
    others = [gpu(name) for name in gpu_names() if name.startswith("mi")]
    assert len(others) == 7
    for one in others:
        assert l1_after_shared_memory(resources, one) is one


def test_a_score_is_of_the_l1_that_the_kernel_leaves():
    resources = Resources(threads=256, vgprs=128, lds_bytes=100 * KB, instructions_in_flight=2, source="made here")
    work = dataclasses.replace(kernel("gemm", M=512, N=512, K=256), resources=resources)
    scorer = Scorer(work, gpu("h200"), replay="lockstep")
    assert (scorer.gpu.l1.size_bytes, scorer.plan.gpu.l1.size_bytes) == (256 * KB, (256 - 228) * KB)


@pytest.mark.parametrize("sizes", [(), (8192, 0), (0, 0), (-8192, 8192), (0, 262144), (0, 100), (0, 8192.0), (True,)])
def test_carve_outs_that_cannot_be_are_refused(sizes):
    with pytest.raises(SpecError, match="lds_carve_outs"):
        dataclasses.replace(gpu("h200").l1, lds_carve_outs=sizes)


# ---- Does an L2 that fetches half lines fetch what one works out by hand, and do the views of it agree?
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


# ---- An L2 of two sides, worked out by hand: who holds what, who is asked, and how long that takes.
symmetry_module = importlib.import_module("xcd_model.fast.symmetry")
NS = 10**6  # femtoseconds
# Two CUs, one on each side; lines of 128 B, even ones at home on side 0, odd ones on side 1. Each side is one set.
ODD = L2Partitions(coherence_bits=128, cu_groups=2, remote_ns=50.0)


def two_sided(ways=4, sides=ODD):
    return dataclasses.replace(small_gpu(xcds=1, cus=2, l2=(1, ways), mall=None), l2_partitions=sides)


def turns(*lines_of, writes=()):
    """A trace of two workgroups, the first on side 0: in each turn both read the lines of a pair (None: line 1000)."""
    build = TraceBuilder(n_workgroups=2, line_bytes=128)
    x = build.array("x", rows=1, cols=128 * 2048, item_bytes=1)
    for turn, pair in enumerate(lines_of):
        col = np.array([[128 * (1000 + w if line is None else line)] for w, line in enumerate(pair)])
        access = build.write if turn in writes else build.read
        build.step(access(x, row=np.zeros((2, 1), np.int64), col=col, rows=1, cols=128))
    return build.trace()


def counted(trace, machine):
    got = replay_lockstep(prepare(trace, machine), np.arange(2), workgroups_per_cu=1)
    return got.hbm_read_bytes // 128, got.remote_hits, got.hbm_write_bytes // 128


@pytest.mark.parametrize(
    ("pairs", "read", "far"),
    [
        ([(0, 0)], 1, 1),  # side 0 fetches it home, side 1 finds it there
        ([(1, 1)], 1, 0),  # side 0 fetches it to its home on side 1, and side 1 finds it there
        ([(0, 0), (0, 0)], 1, 1),  # the second time side 1 has a copy
        ([(0, 1)], 2, 0),  # each its own
        ([(1, 0)], 2, 0),  # each the other's: both homes and both copies
        ([(1, 0), (0, 1)], 2, 0),
    ],
)
def test_a_line_is_fetched_once_and_copied_where_it_is_read(pairs, read, far):
    assert counted(turns(*pairs), two_sided())[:2] == (read, far)


def test_a_copy_takes_a_place_and_so_does_its_home():
    """Side 0 holds two lines: of 0, 2 and a copy of 1 the oldest is gone, though side 1 has room."""
    again = [(0, None), (2, None), (1, None), (2, None), (1, None), (0, None)]
    alone = counted(turns(*again), two_sided(ways=3))[0]
    assert counted(turns(*again), two_sided(ways=2))[0] == alone + 1


def test_a_line_that_is_read_from_its_copy_grows_old_at_home():
    """Side 0 reads its copy of line 1 again and again, while side 1 needs three more lines: the home is gone."""
    pairs = [(1, 3), (1, 5), (1, 7), (None, 1)]
    assert counted(turns(*pairs), two_sided(ways=3)) == (6, 0, 0)  # 1, 3, 5, 7, the idle one's, and 1 once more
    assert counted(turns(*pairs), two_sided(ways=4)) == (5, 0, 0)


def test_a_store_goes_home_and_is_written_back_once():
    """Both sides store the same two lines; copies are clean."""
    reads, far, written = counted(turns((0, 0), (1, 1), writes=(0, 1)), two_sided())
    assert (reads, far, written) == (0, 0, 2)
    machine = two_sided(ways=1)  # each side holds one line: the second store drives out home and copy of the first
    assert counted(turns((0, 1), (2, 3), (0, 1), writes=(0, 1)), machine) == (2, 0, 4)


@settings(max_examples=100, deadline=None)
@given(case=cases(traces=tiled_traces), data=st.data())
def test_sets_that_stand_for_others_count_what_those_would(case, data):
    """Lines read in part take fewer requests than whole ones, which nothing but far hits tells apart."""
    trace, order, machine, occupancy = case
    dealt = data.draw(sides(machine.l2.line_bytes, machine.cus_per_xcd))
    machine = dataclasses.replace(machine, mall=None, l2_partitions=dealt)
    caches = naive.Caches(machine)
    naive.replay(trace, order, machine, occupancy, caches=caches)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(symmetry_module, "WORTHWHILE", 1.0)
        got = replay_lockstep(prepare(trace, machine), order, workgroups_per_cu=occupancy)
    assert (got.remote_hits, got.flushed) == (caches.remote_hits, caches.flushed)


def test_the_way_to_the_other_side_takes_its_time():
    """The second workgroup asks for a line long after the first has it; its home is on the other side, or is not."""

    def time(line):
        pairs = [(line, None)] * 3 + [(line, line)]
        plan = prepare(turns(*pairs), two_sided(ways=8))
        return replay_timed(plan, np.arange(2), workgroups_per_cu=1, issue=IssueModel(1, 0)).time_fs

    assert time(0) == time(1) + 50 * NS


def test_sides_of_compute_units():
    def sides_of(groups, cus):
        return L2Partitions(coherence_bits=128, cu_groups=groups, remote_ns=1.0).partition_of(cus).tolist()

    assert sides_of(4, 8) == [0, 0, 1, 1] * 2
    assert sides_of(4, 6) == [0, 0, 1, 0, 1, 1]  # 2, 1, 1 and 2
    assert sides_of(1, 3) == [0, 0, 0]
    assert Gpu.from_dict(gpu("h200").as_dict()).l2_partitions == gpu("h200").l2_partitions


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"coherence_bits": 0}, "coherence_bits = 0 must be more than 0"),
        ({"coherence_bits": 1 << 63}, "coherence_bits does not fit the 64 bits"),
        ({"cu_groups": 0}, "cu_groups = 0 must be more than 0"),
        ({"remote_ns": -1.0}, r"remote_ns = -1\.0 must be more than 0"),
    ],
)
def test_sides_that_make_no_sense(values, said):
    with pytest.raises(SpecError, match=said):
        dataclasses.replace(ODD, **values)


def test_homes_are_those_of_lines_and_no_infinity_cache_lies_behind():
    with pytest.raises(SpecError, match=r"l2\.line_bytes = 128 must divide l2_partitions\.coherence_bits = 192"):
        two_sided(sides=dataclasses.replace(ODD, coherence_bits=192))
    with_mall = dataclasses.replace(small_gpu(xcds=1, cus=2), l2_partitions=ODD)
    with pytest.raises(ReplayError, match="l2_partitions is modelled for an L2 with no Infinity Cache"):
        prepare(turns((0, 0)), with_mall)
