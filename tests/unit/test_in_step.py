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
from xcd_model.nvidia.rates import fill_time, share_in_step

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


@given(cases(), st.integers(1, 9), st.integers(0, 40))
def test_the_share_is_that_of_pairs_one_by_one(case, running, l2_lines):
    trace, order, *_ = case
    share = share_in_step(trace, order, running, l2_lines)
    assert share == naive_in_step.share_in_step(trace, order, running, l2_lines)
    assert 0 <= share <= 1


def test_all_in_step_and_none():
    apart, same = [[2 * w, 2 * w + 1] for w in range(6)], [[0, 1]] * 6
    assert share_in_step(loads(apart), np.arange(6), 6, 0) == 0
    assert share_in_step(loads(same), np.arange(6), 6, 0) == 1
    assert share_in_step(loads(same), np.arange(6), 1, 0) == 0, "nobody runs beside it"


def test_what_is_loaded_once_beside_an_operand_that_is_loaded_often_keeps_few_in_step():
    apart = [[4 * w + i for i in range(4)] for w in range(6)]
    assert share_in_step(loads(apart, beside=1), np.arange(6), 6, 0) == Fraction(1, 4)


def test_a_row_of_tiles_shares_a_and_a_column_shares_b():
    """Of 8 that run, a row shares its rows of A among all; by column 6 share columns of B, and 2 of them rows of A."""
    assert share_in_step(GEMM, BY_ROW, COLUMNS, 0) > share_in_step(GEMM, BY_COLUMN, COLUMNS, 0)
    assert share_in_step(GEMM, BY_ROW[:COLUMNS], COLUMNS, 0) == 1
    assert share_in_step(GEMM, BY_COLUMN[:ROWS], ROWS, 0) == 1


def test_a_load_takes_from_what_it_takes_alone_to_what_it_takes_of_all_that_run():
    order, how = np.arange(6), {"running": 6, "cus": 132, "l2_lines": 0, "of_l2": 5}
    same, apart = loads([[0]] * 6), loads([[w] for w in range(6)])
    assert fill_time(same, order, alone=10, **how) == 30
    assert fill_time(apart, order, alone=10, **how) == 10
    half = loads([[0], [0], [0], [1], [2], [3]])  # three of six are in step with two of five
    assert fill_time(half, order, alone=10, **how) == 10 + 20 // 5
    assert fill_time(same, order, alone=10, **how | {"cus": 3}) == 15, "two workgroups on each of three"
    assert fill_time(same, order, alone=10, **how | {"running": 4}) == 20
    assert fill_time(same, order, alone=40, **how) == 40, "an L2 that gives out more than they take in"


def test_workgroups_that_touch_nothing_run_beside_nobody():
    same = loads([[0]] * 6)
    every_other = dataclasses.replace(same, start=np.append(np.repeat(same.start[:-1], 2), same.start[-1]))
    assert every_other.n_workgroups == 12
    assert share_in_step(every_other, np.arange(12), 12, 0) == 1


def test_nobody_waits_where_the_l2_has_room_for_all_that_run():
    same = loads([[0, 1]] * 6)
    assert share_in_step(same, np.arange(6), 6, 1) == 1
    assert share_in_step(same, np.arange(6), 6, 2) == 0


@pytest.mark.parametrize(("k", "by_column"), [(4096, True), (512, False)])
def test_on_an_h200_a_deep_gemm_by_columns_is_in_step_and_one_that_the_l2_holds_is_not(k, by_column, monkeypatch):
    """132 tiles of 128 x 256 run at once, by columns of 66 or in blocks of 11; measured are 4 to 20 % by column."""
    device, issue = gpu("h200"), IssueModel(in_flight=4, compute_fs=3 * 10**8, step=2)
    trace = gemm_trace(66 * 128, 12 * 256, k, 128, 256, 64)
    tiles = np.arange(66 * 12).reshape(66, 12)
    orders = {
        "column": tiles.T.reshape(-1)[:132],
        "block": np.concatenate([tiles[11 * i : 11 * i + 11, :].reshape(-1) for i in range(6)])[:132],
    }
    rest = {name: np.setdiff1d(np.arange(tiles.size), first) for name, first in orders.items()}
    plan = prepare(trace, device)
    whole = {name: np.concatenate([first, rest[name]]) for name, first in orders.items()}

    def times():
        return [replay_timed(plan, whole[name], workgroups_per_cu=1, issue=issue).time_fs for name in orders]

    column, block = times()
    monkeypatch.setattr("xcd_model.nvidia.rates.fill_time", lambda *given, alone, **how: alone)
    column_alone, block_alone = times()
    if by_column:
        assert column / column_alone > 1.03 and column / column_alone > block / block_alone
    else:
        assert (column, block) == (column_alone, block_alone)
