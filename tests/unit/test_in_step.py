"""Are workgroups in step with those that load the same tiles, and is a load then taken in as slowly as all together?"""

import dataclasses
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import naive_in_step
from tests.machines import cases, gemm_trace
from xcd_model import IssueModel, TraceBuilder, gpu, prepare, replay_timed
from xcd_model.nvidia.in_step import fill_time, share_in_step

ROWS, COLUMNS = 6, 8  # of tiles
GEMM = gemm_trace(ROWS * 16, COLUMNS * 16, 64, 16, 16, 16)
BY_ROW = np.arange(ROWS * COLUMNS)
BY_COLUMN = BY_ROW.reshape(ROWS, COLUMNS).T.reshape(-1)


def loads(lines_of_workgroup, *, beside=0):
    """A workgroup loads its lines of one tensor, one by one, and the first ``beside`` of another."""
    build = TraceBuilder(n_workgroups=len(lines_of_workgroup), line_bytes=128)
    one, other = (build.array(name, rows=64, cols=64, item_bytes=2) for name in "AB")
    for lines in zip(*lines_of_workgroup, strict=True):
        build.step(build.read(one, row=np.array(lines)[:, None], col=0, rows=1, cols=64))
    for line in range(beside):
        build.step(build.read(other, row=line, col=0, rows=1, cols=64))
    return build.trace()


@given(cases(), st.integers(1, 9))
def test_the_share_is_that_of_pairs_one_by_one(case, running):
    trace, order, *_ = case
    share = share_in_step(trace, order, running)
    assert share == naive_in_step.share_in_step(trace, order, running)
    assert 0 <= share <= 1


def test_all_in_step_and_none():
    apart, same = [[2 * w, 2 * w + 1] for w in range(6)], [[0, 1]] * 6
    assert share_in_step(loads(apart), np.arange(6), 6) == 0
    assert share_in_step(loads(same), np.arange(6), 6) == 1
    assert share_in_step(loads(same), np.arange(6), 1) == 0, "nobody runs beside it"


def test_what_is_loaded_once_beside_an_operand_that_is_loaded_often_keeps_few_in_step():
    apart = [[4 * w + i for i in range(4)] for w in range(6)]
    assert share_in_step(loads(apart, beside=1), np.arange(6), 6) == Fraction(1, 4)


def test_a_row_of_tiles_shares_a_and_a_column_shares_b():
    """Of 8 that run, a row shares its rows of A among all; by column 6 share columns of B, and 2 of them rows of A."""
    assert share_in_step(GEMM, BY_ROW, COLUMNS) > share_in_step(GEMM, BY_COLUMN, COLUMNS)
    assert share_in_step(GEMM, BY_ROW[: COLUMNS * 1], COLUMNS) == 1
    assert share_in_step(GEMM, BY_COLUMN[:ROWS], ROWS) == 1


def test_a_load_takes_from_what_it_takes_alone_to_what_it_takes_of_all():
    order = np.arange(6)
    assert fill_time(loads([[0]] * 6), order, 6, 10, 30) == 30
    assert fill_time(loads([[w] for w in range(6)]), order, 6, 10, 30) == 10
    assert fill_time(loads([[0], [0], [0], [1], [2], [3]]), order, 6, 10, 30) == 10 + round(20 * Fraction(6, 30))
    assert fill_time(loads([[0]] * 6), order, 6, 30, 10) == 30, "an L2 that gives out more than all take in"


@pytest.mark.parametrize("name", ["h200", "mi300x"])
def test_on_an_h200_alone_loads_of_those_in_step_come_later(name):
    device = gpu(name)
    device = dataclasses.replace(device, cus_per_xcd=COLUMNS, **({"l2_partitions": None} if name == "h200" else {}))
    device = dataclasses.replace(device, l2=dataclasses.replace(device.l2, read_bytes_per_cycle=16))
    plan, issue = prepare(GEMM, device), IssueModel(in_flight=2, compute_fs=10**6)
    times = [replay_timed(plan, order, workgroups_per_cu=1, issue=issue).time_fs for order in (BY_ROW, BY_COLUMN)]
    without = dataclasses.replace(device, limits=dataclasses.replace(device.limits, fill_bytes_per_cycle=None))
    plan = prepare(GEMM, without)
    before = [replay_timed(plan, order, workgroups_per_cu=1, issue=issue).time_fs for order in (BY_ROW, BY_COLUMN)]
    if name == "mi300x":
        assert times == before
    else:
        assert times[0] - before[0] > 0 and times[1] - before[1] > 0
