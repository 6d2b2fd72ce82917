"""Do rows of the memory that are opened take the time that one works out by hand, and open ones none?"""

import dataclasses
from statistics import mean

import numpy as np
import pytest

from tests.machines import small_gpu
from tests.naive_hbm import OpenRows, Turnaround
from xcd_model import IssueModel, TraceBuilder, gpu, prepare, replay_timed
from xcd_model.errors import ReplayError, SpecError
from xcd_model.nvidia.memory import WINDOW_FS, _note_busy, _turnaround, idle_hbm
from xcd_model.spec.nvidia import HbmBanks

NS = 10**6  # femtoseconds
# By hand: a 128 B line is 8 ns of HBM, a write-back of half a line 4 ns; a row that is opened is at least 20 ns for a
# read and 30 ns for a write. Two lines a block, two blocks a row, rows next to each other.
ROWS = HbmBanks(block_bytes=256, blocks=2, stretch_blocks=1, open_rows=1024, read_ps=20e3, write_ps=30e3)


def hand_gpu(rows=ROWS, *, ways=16):
    machine = small_gpu(xcds=1, cus=1, l2=(1, ways), mall=None)
    hbm = dataclasses.replace(machine.hbm, bandwidth_gbps=16.0, peak_bandwidth_gbps=16.0, latency_ns=1000.0)
    return dataclasses.replace(machine, hbm=hbm, hbm_rows=rows)


def replayed(machine, *, reads=(), writes=()):
    """One workgroup that writes lines, one instruction each, then reads spans (first line, lines)."""
    build = TraceBuilder(n_workgroups=1, line_bytes=128)
    x = build.array("x", rows=1, cols=128 * 4096, item_bytes=1)
    for first in writes:
        build.step(build.write(x, row=0, col=128 * first, rows=1, cols=128))
    for first, n in reads:
        build.step(build.read(x, row=0, col=128 * first, rows=1, cols=128 * n))
    plan = prepare(build.trace(), machine)
    return replay_timed(plan, np.array([0]), workgroups_per_cu=1, issue=IssueModel(1, 0))


@pytest.mark.parametrize(
    ("reads", "ns"),
    [
        ([(0, 1)], 12),  # 20 less the line's 8
        ([(0, 4)], 12),  # four lines of one row
        ([(0, 1), (3, 1), (1, 2)], 12),
        ([(0, 5)], 24),  # the fifth line is in the next row
        ([(0, 1), (0, 1)], 12),  # the second is a hit
        ([(0, 1), (4, 1), (1, 1)], 24),  # two banks: the first row is still open
    ],
)
def test_reads_by_hand(reads, ns):
    opened, plain = replayed(hand_gpu(), reads=reads), replayed(hand_gpu(None), reads=reads)
    assert (opened.activation_fs, plain.activation_fs) == (ns * NS, 0)
    assert opened.time_fs == plain.time_fs + ns * NS  # one load after the other: nothing hides it


def test_one_bank_has_one_row_open():
    one_bank = dataclasses.replace(ROWS, open_rows=1)
    assert replayed(hand_gpu(one_bank), reads=[(0, 1), (4, 1), (1, 1)]).activation_fs == 36 * NS


def test_what_is_written_back_opens_rows_and_the_flush_does_not():
    """Three lines in an L2 of two: the first falls out, its two halves take 8 ns of the 30."""
    got = replayed(hand_gpu(ways=2), writes=[0, 1, 2])
    assert got.activation_fs == (30 - 8) * NS
    assert replayed(hand_gpu(ways=2), writes=[0, 1]).activation_fs == 0


def test_the_time_of_a_kernel_that_only_writes_is_that_of_its_write_backs():
    """Forty lines, two ways: 38 fall out, 19 blocks of two, each the half of a row."""
    lines = np.arange(40)
    got = replayed(hand_gpu(ways=2), writes=lines)
    assert got.activation_fs == 10 * 22 * NS
    assert got.time_fs >= 38 * 8 * NS + got.activation_fs


def test_a_row_has_one_block_in_each_of_the_stretches_that_follow_each_other():
    """Stretches of five blocks of two lines, two to a row: as many rows as blocks, each of four lines."""
    rows = OpenRows(hand_gpu(dataclasses.replace(ROWS, stretch_blocks=5)))
    stretches = [[rows.row_of(line) for line in range(first, first + 10, 2)] for first in range(0, 60, 10)]
    assert all(rows.row_of(line) == rows.row_of(line + 1) for line in range(0, 60, 2))
    for number, found in enumerate(stretches):
        assert sorted(found) == [(number // 2, place) for place in range(5)]
    assert len({tuple(place for _, place in found) for found in stretches}) > 1  # not the same way in each


def test_rows_of_part_of_a_memory():
    assert ROWS.shared_by(4) == dataclasses.replace(ROWS, open_rows=256, read_ps=80e3, write_ps=120e3)


def test_a_block_of_no_whole_lines_and_an_infinity_cache_are_refused():
    with pytest.raises(SpecError, match=r"l2\.line_bytes = 128 must divide hbm_rows\.block_bytes = 192"):
        hand_gpu(dataclasses.replace(ROWS, block_bytes=192))
    with pytest.raises(SpecError, match="open_rows"):
        dataclasses.replace(ROWS, open_rows=0)
    with pytest.raises(SpecError, match="a million"):
        dataclasses.replace(ROWS, open_rows=10**7)
    machine = dataclasses.replace(gpu("mi300x"), hbm_rows=ROWS)
    build = TraceBuilder(n_workgroups=1, line_bytes=128)
    build.step(build.read(build.array("x", rows=1, cols=128, item_bytes=1), row=0, col=0, rows=1, cols=128))
    with pytest.raises(ReplayError, match="hbm_rows"):
        prepare(build.trace(), machine)


def test_sets_are_looked_up_one_by_one():
    """A class of sets that stands for others would see rows opened once that the others open again."""
    build = TraceBuilder(n_workgroups=4, line_bytes=128)
    x = build.array("x", rows=4, cols=128 * 64, item_bytes=1)
    build.step(build.read(x, row=np.arange(4), col=0, rows=1, cols=128 * 64))
    machine = small_gpu(xcds=1, cus=1, l2=(16, 2), mall=None)
    fractions = [
        prepare(build.trace(), dataclasses.replace(machine, hbm_rows=rows)).simulated_fraction for rows in (None, ROWS)
    ]
    assert fractions[0] < fractions[1] == 1.0


# ---- Do reads between writes wait as one works out by hand, and workgroups for each other's places?
MOST = 200 * NS


def waits(before, now, *, n=2000):
    """Waits of reads in the second half of a microsecond; (busy, writing) in parts of the one before and of it."""
    recent = idle_hbm(None, 128).recent
    _note_busy(recent, WINDOW_FS, *(round(part * WINDOW_FS) for part in before))
    _note_busy(recent, 2 * WINDOW_FS, *(round(part * WINDOW_FS) for part in now))
    return [_turnaround(recent, 2 * WINDOW_FS + WINDOW_FS // 2 + i * 197_003, MOST) for i in range(n)]


@pytest.mark.parametrize(
    ("before", "now", "mean_ns"),
    [
        ((0, 0), (0, 0), 0),
        ((1, 0), (1, 0), 0),  # nothing but reads
        ((1, 0.5), (0, 0), 60),  # half of the window before counts at first, a tenth at last
        ((0, 0), (0.5, 0.5), 100),
        ((0, 0), (0.4, 0.05), 40),  # a twentieth of writing counts four times
        ((1, 1), (1, 1), 200),  # never more than always
    ],
)
def test_the_mean_is_the_part_of_the_time_that_memory_is_busy(before, now, mean_ns):
    found = waits(before, now)
    assert mean(found) == pytest.approx(mean_ns * NS, rel=0.05, abs=1)
    assert min(found) >= 0


def test_waits_are_drawn_from_nothing_to_twice_the_mean():
    found = waits((1, 1), (1, 1))
    assert min(found) < 0.01 * MOST and 1.98 * MOST < max(found) <= 2 * MOST
    assert found == waits((1, 1), (1, 1))


def test_what_was_long_ago_is_forgotten():
    recent = idle_hbm(None, 128).recent
    _note_busy(recent, 0, WINDOW_FS, WINDOW_FS)
    _note_busy(recent, 2 * WINDOW_FS, 0, 0)
    assert _turnaround(recent, 2 * WINDOW_FS, MOST) == 0


def machine(wait_ns=None, gap_ns=None):
    small = small_gpu(xcds=1, cus=1, l2=(1, 1), mall=None)
    hbm = dataclasses.replace(small.hbm, bandwidth_gbps=16.0, peak_bandwidth_gbps=16.0, turnaround_ns=wait_ns)
    limits = dataclasses.replace(small.limits, workgroup_gap_ns=gap_ns)
    return dataclasses.replace(small, hbm=hbm, limits=limits)


def test_a_read_that_drives_out_a_write_waits_and_one_that_does_not_waits_not():
    reads, both = {"reads": [(9, 1)]}, {"writes": [0], "reads": [(9, 1)]}
    for what, longer in ((reads, False), (both, True)):
        plain, slow = (replayed(machine(wait), **what).time_fs for wait in (None, 5000.0))
        assert (slow > plain) == longer
    model = Turnaround(machine(5000.0))  # by hand: a line read and one written take 16 ns of a microsecond
    model.note(16 * NS, 16 * NS, 8 * NS)
    assert (model.lately(model.busy, 16 * NS), model.lately(model.writing, 16 * NS)) == (16_000, 8_000)  # in ps
    assert 0 < slow - plain <= 2 * 5000 * NS * 0.016


def one_line_each(n):
    build = TraceBuilder(n_workgroups=n, line_bytes=128)
    x = build.array("x", rows=n, cols=128, item_bytes=1)
    build.step(build.read(x, row=np.arange(n), col=0, rows=1, cols=128))
    return build.trace()


@pytest.mark.parametrize(
    ("workgroups", "programs", "gaps"),
    [(1, None, 0), (4, None, 3), (4, 1, 0), (4, 2, 1), (4, 4, 3)],
)
def test_a_workgroup_begins_a_gap_after_the_one_before_it_and_a_program_goes_on_at_once(workgroups, programs, gaps):
    """One slot: every workgroup but the first waits for its place, and of a program's tiles the first alone."""
    trace = one_line_each(workgroups)

    def time_fs(gap_ns):
        plan = prepare(trace, machine(gap_ns=gap_ns), programs=programs)
        return replay_timed(plan, np.arange(workgroups), workgroups_per_cu=1, issue=IssueModel(1, 0)).time_fs

    assert time_fs(700.0) - time_fs(None) == gaps * 700 * NS


@pytest.mark.parametrize(
    ("part", "name", "wrong"),
    [("hbm", "turnaround_ns", -1.0), ("hbm", "turnaround_ns", 2e6), ("limits", "workgroup_gap_ns", -1.0)],
)
def test_times_that_make_no_sense_are_refused(part, name, wrong):
    with pytest.raises(SpecError, match=name):
        dataclasses.replace(getattr(gpu("h200"), part), **{name: wrong})
    assert getattr(getattr(gpu("mi300x"), part), name) is None  # nobody has measured it
