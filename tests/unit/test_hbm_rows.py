"""Do rows of the memory that are opened take the time that one works out by hand, and open ones none?"""

import dataclasses

import numpy as np
import pytest

from tests.machines import small_gpu
from tests.naive_hbm_rows import OpenRows
from xcd_model import IssueModel, TraceBuilder, gpu, prepare, replay_timed
from xcd_model.errors import ReplayError, SpecError
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
