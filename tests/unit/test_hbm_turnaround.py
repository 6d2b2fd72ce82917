"""Do reads between writes wait as one works out by hand, and workgroups for each other's places?"""

import dataclasses
from statistics import mean

import numpy as np
import pytest

from tests.machines import small_gpu
from tests.naive_hbm_turnaround import Turnaround
from tests.unit.test_hbm_rows import replayed
from xcd_model import IssueModel, TraceBuilder, gpu, prepare, replay_timed
from xcd_model.errors import SpecError
from xcd_model.nvidia.memory import WINDOW_FS, _note_busy, _turnaround, idle_hbm

NS = 10**6  # femtoseconds
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
