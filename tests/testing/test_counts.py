"""Does a kernel that works its counts of tiles out from sizes have its launch, and a proof in the grid's own counts?"""

import numpy as np
import pytest

from swizzle_sim.language import Grid, Swizzle
from swizzle_sim.testing import read_prologue
from swizzle_sim.testing.run import check_file

GROUPED = """
from package.utils import triton_extension as wide

@triton.jit
def grouped(pid, rows, cols, tall, BROAD, GROUP_SIZE):
    high, across = tl.cdiv(rows, tall), tl.cdiv(cols, BROAD)
    first = pid // (GROUP_SIZE * across) * GROUP_SIZE
    size = tl.minimum(high - first, GROUP_SIZE)
    inside = pid % (GROUP_SIZE * across)
    return first + inside % size, inside // {by}

@triton.jit
def kernel(out, S, hidden, BLOCK_S, BLOCK_H, USE_GROUPS: tl.constexpr):
    p = wide.program_id(0)
    if USE_GROUPS:
        pid_m, pid_n = grouped(p, S, hidden, BLOCK_S, BLOCK_H, 4)
    else:
        pid_m, pid_n = p // tl.cdiv(hidden, BLOCK_H), p % tl.cdiv(hidden, BLOCK_H){odd}
    x = tl.load(out + pid_m)
    tl.store(out + pid_m * hidden + pid_n, x)
"""
ROTARY = """
@triton.jit
def rotary(q, {n}: tl.constexpr):
    pid = tl.program_id(0)
    at = pid // {n}
    x = tl.load(q + at * {n} + pid % {n} + 1)
    for k in range({n}):
        y = x * k
        tl.store(q + k, y)
"""


def kernel_of(path):
    (found,) = check_file(path, function="kernel")
    return found


def test_two_quotients_of_a_helper_are_the_launch_and_its_text_is_proved(written):
    path = written(GROUPED.format(by="size", odd=""))
    prologue = read_prologue(path, "kernel")
    assert prologue.launch == "tl.cdiv(S, BLOCK_S) * tl.cdiv(hidden, BLOCK_H)"
    assert "cdiv" not in prologue.counted.text and "num_pid_n" in prologue.counted.text
    sizes = {"USE_GROUPS": 1, "S": 500, "hidden": 90, "BLOCK_S": 100, "BLOCK_H": 10}
    grid = Grid((45,), (5, 9))
    own, counted = (Swizzle.parse(text.text).permutation(grid, 8, sizes) for text in (prologue.text, prologue.counted))
    assert np.array_equal(own, counted)
    found = kernel_of(path)
    assert (found.status, found.verdict) == ("passed", "proved"), found.message
    assert found.guessed == "USE_GROUPS=0,1"


@pytest.mark.parametrize("odd", [" + S % 2 * 0", " + hidden - hidden"])
def test_a_size_that_is_read_for_more_leaves_the_text_as_it_is(written, odd):
    assert read_prologue(written(GROUPED.format(by="size", odd=odd)), "kernel").counted is None


def test_a_wrong_one_is_refuted(written):
    assert kernel_of(written(GROUPED.format(by="GROUP_SIZE", odd=""))).status == "failed"


def test_what_is_read_from_memory_is_no_coordinate(written):
    assert not list(check_file(written(ROTARY.format(n="HEADS"))))


LOADED = """
@triton.jit
def experts(out, length_ptr, N, BLOCK_M, BLOCK_N, SPLIT_K):
    pid = tl.program_id(0)
    part = pid % SPLIT_K
    pid = pid // SPLIT_K
    length = tl.load({at})
    rows, cols = tl.cdiv(length, BLOCK_M), tl.cdiv(N, BLOCK_N)
    if pid < rows * cols:
        pid = rows * cols - 1 - pid
    else:
        return
    pid_m = pid // {by}
    pid_n = pid % cols
    tl.store(out + pid_m * N + pid_n, part)
"""


@pytest.mark.parametrize(
    ("at", "by", "verdict"),
    [
        ("length_ptr", "cols", "proved"),
        ("length_ptr", "(cols + 1)", "refuted"),
        ("length_ptr + pid", "cols", ""),
        ("length_ptr + tl.program_id(0)", "cols", ""),
    ],
)
def test_a_count_that_is_the_same_for_all_workgroups_is_a_size(written, at, by, verdict):
    (found,) = check_file(written(LOADED.format(at=at, by=by)), function="experts")
    assert found.verdict == verdict, found.message
    assert not verdict or found.guessed == "SPLIT_K=1"
