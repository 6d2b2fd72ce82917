"""Do reads of one line by SMs of one GPC go to the L2 as one, as often as they are under way together?"""

import dataclasses
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import naive_coalescer
from tests.machines import cases, gemm_trace, sides
from tests.unit.test_in_step import loads
from xcd_model import IssueModel, gpu, prepare, replay_timed
from xcd_model.analysis.timing import timed_time
from xcd_model.errors import SpecError
from xcd_model.nvidia.rates import read_time, requests_by_readers, share_sent
from xcd_model.spec.nvidia import L2Partitions

H200 = gpu("h200")
PAIRS = np.array([0, 0, 1, 1, 2, 2])  # GPCs of six SMs


@given(cases(), st.integers(1, 9), st.data())
def test_a_read_takes_the_share_that_is_sent_of_its_time(case, running, data):
    trace, order, machine, _ = case
    joined = sides(machine.l2.line_bytes, machine.cus_per_xcd).filter(lambda one: one.reads_as_one is not None)
    partitions = data.draw(joined)
    machine = dataclasses.replace(machine, mall=None, l2_partitions=partitions)
    got = read_time(
        trace,
        order,
        running=running,
        xcds=machine.xcds,
        cus=machine.cus_per_xcd,
        partitions=partitions,
        request_bytes=machine.l2.read_request_bytes,
        alone=10**6,
    )
    assert got == naive_coalescer.read_time(trace, order, machine, running=running, alone=10**6)
    assert 0 < got <= 10**6


@pytest.mark.parametrize(
    ("lines", "by_readers"),
    [
        ([[0]] * 6, [0, 0, 6 * 4]),  # two of each GPC
        ([[w] for w in range(6)], [0, 6 * 4]),
        ([[0], [0], [0], [1], [2], [2]], [0, 2 * 4, 4 * 4]),
        ([[0, 0]] * 6, [0, 0, 12 * 4]),  # a workgroup that loads it twice counts once
    ],
)
def test_readers_are_counted_by_gpc(lines, by_readers):
    got = requests_by_readers(loads(lines), np.arange(6), running=6, gpc=PAIRS, request_bytes=32)
    assert got.tolist() == by_readers


def test_so_many_go_as_one_as_are_under_way_and_no_more_than_four():
    assert share_sent(np.array([0, 10]), 4, 0.5) == 1
    assert share_sent(np.array([0, 0, 10]), 4, 0.5) == Fraction(2, 3)
    assert share_sent(np.array([0, 0, 10]), 4, 1.0) == Fraction(1, 2)
    assert share_sent(np.array([0] * 18 + [10]), 4, 0.5) == Fraction(1, 4)
    assert share_sent(np.array([0, 10, 10]), 4, 1.0) == Fraction(3, 4)
    assert share_sent(np.zeros(1), 4, 1.0) == 1, "a launch that loads nothing"


def test_on_an_h200_tiles_of_64_whose_neighbours_share_operands_are_faster_than_those_that_share_none():
    side, issue = 32, IssueModel(in_flight=4, compute_fs=10**7, step=2)
    trace = gemm_trace(64 * side, 64 * side, 1024, 64, 64, 64)
    orders = {"row": np.arange(side * side), "scatter": np.random.default_rng(0).permutation(side * side)}
    alone = dataclasses.replace(H200.l2_partitions, reads_as_one=None, under_way=None)

    def run(order, partitions):
        plan = prepare(trace, dataclasses.replace(H200, l2_partitions=partitions))
        return replay_timed(plan, orders[order], workgroups_per_cu=4, issue=issue)

    row, scatter = (run(order, H200.l2_partitions) for order in orders)
    assert row.l2_read_fs < 0.9 * scatter.l2_read_fs
    assert row.time_fs < 0.95 * run("row", alone).time_fs
    time = timed_time(row, H200, issue)
    assert time.by_resource_us["l2"] <= time.total_us, "no busier than the kernel is long"
    assert run("row", alone).l2_read_fs == run("scatter", alone).l2_read_fs > scatter.l2_read_fs


@pytest.mark.parametrize("given", [{"reads_as_one": 4}, {"under_way": 0.1}, {"reads_as_one": 4, "under_way": 1.5}])
def test_both_numbers_are_given_or_neither(given):
    with pytest.raises(SpecError):
        L2Partitions(coherence_bits=128, cu_groups=2, remote_ns=1.0, **given)
