"""An L2 of two sides, worked out by hand: who holds what, who is asked, and how long that takes."""

import dataclasses
import importlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import naive
from tests.machines import cases, sides, small_gpu, tiled_traces
from xcd_model import Gpu, IssueModel, TraceBuilder, gpu, prepare, replay_lockstep, replay_timed
from xcd_model.analysis.stack_distance import capacity_curve
from xcd_model.errors import ReplayError, SpecError
from xcd_model.spec.nvidia import L2Partitions

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
    assert L2Partitions(coherence_bits=128, cu_groups=4, remote_ns=1.0).partition_of(8).tolist() == [
        0,
        0,
        1,
        1,
        0,
        0,
        1,
        1,
    ]
    assert L2Partitions(coherence_bits=128, cu_groups=4, remote_ns=1.0).partition_of(6).tolist() == [
        0,
        0,
        1,
        0,
        1,
        1,
    ]  # 2, 1, 1 and 2
    assert L2Partitions(coherence_bits=128, cu_groups=1, remote_ns=1.0).partition_of(3).tolist() == [0, 0, 0]
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


def test_homes_are_those_of_lines():
    with pytest.raises(SpecError, match=r"l2\.line_bytes = 128 must divide l2_partitions\.coherence_bits = 192"):
        two_sided(sides=dataclasses.replace(ODD, coherence_bits=192))


def test_what_is_not_modelled_is_refused():
    with_mall = dataclasses.replace(small_gpu(xcds=1, cus=2), l2_partitions=ODD)
    with pytest.raises(ReplayError, match="l2_partitions is modelled for an L2 with no Infinity Cache"):
        prepare(turns((0, 0)), with_mall)
    with pytest.raises(ReplayError, match="no curve by size of a partitioned L2"):
        capacity_curve(prepare(turns((0, 0)), two_sided()), np.arange(2), workgroups_per_cu=1)
