"""Does an L1 keep from the L2 what it holds, and do its two replays count the same?"""

import dataclasses

import numpy as np
import pytest
from hypothesis import assume, given, settings

from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.workload.kernels import kernel
from tests import naive
from tests.machines import cases, gemm_trace, small_gpu, tiled_traces
from xcd_model import (
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
from xcd_model.replay.traffic import L1_HITS, L1_REQUESTS, READ_REQUESTS


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
