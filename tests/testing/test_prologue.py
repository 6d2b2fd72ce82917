"""Is what a Triton kernel computes its tile with read right, and everything else refused with its line?"""

from pathlib import Path

import numpy as np
import pytest

from swizzle_sim.language import Grid, Swizzle, family
from swizzle_sim.testing import BijectionError, assert_bijective, read_prologue
from swizzle_sim.testing.run import check_file
from xcd_model.errors import LanguageError, SwizzleSimError

FILE = Path(__file__).parent / "files" / "remap_triton.py"
LINES = FILE.read_text(encoding="utf-8").splitlines()
MATMUL = Path(__file__).parents[1] / "capture" / "kernels" / "matmul.py"


def order(path, function, grid, num_xcds=8, **sizes):
    text = read_prologue(path, function, given=sizes).text.with_values({})
    return Swizzle.parse(text.text).permutation(grid, num_xcds, sizes)


def test_a_kernel_with_two_helpers_is_what_its_parts_are():
    for m, n, num_xcds in ((5, 7, 8), (16, 3, 6), (1, 1, 8)):
        grid = Grid((m * n,), (m, n))
        got = order(FILE, "gemm", grid, num_xcds, M=m * 16, N=n * 32 - 5, BLOCK_M=16, BLOCK_N=32)
        want = Swizzle.parse(family("contiguous+group_m(size=4)")).permutation(grid, num_xcds)
        np.testing.assert_array_equal(got, want)


def test_the_tutorials_matmul_is_group_m():
    grid = Grid((45,), (5, 9))
    got = order(MATMUL, "matmul", grid, M=300, N=270, BLOCK_M=64, BLOCK_N=32, GROUP_M=4)
    np.testing.assert_array_equal(got, Swizzle.parse(family("group_m(size=4)")).permutation(grid, 8))
    assert_bijective(f"{MATMUL}::matmul", GROUP_M=[1, 4, 7], BLOCK_M=64)
    assert read_prologue(MATMUL, "matmul").launch == "(tl.cdiv(M, BLOCK_M)) * (tl.cdiv(N, BLOCK_N))"


def test_a_count_rounded_down_fails_on_the_smallest_ragged_size():
    with pytest.raises(BijectionError) as caught:
        assert_bijective(f"{FILE}::rounded_down")
    point = caught.value.outcome.point
    assert point.grid == Grid((2,), (1, 2))
    assert point.sizes["N"] == 17
    assert "N=17" in str(caught.value)
    assert_bijective(f"{FILE}::rounded_down", launch="cdiv(M, 16) * cdiv(N, 16)", N=[16, 32, 160])


def test_faults_are_shown_at_the_line_of_the_file(tmp_path):
    text = "\n\nimport triton\n\n@triton.jit\ndef f(pid, n):\n    a = n - 3\n    return pid % a\n"
    (tmp_path / "k.py").write_text(text)
    with pytest.raises(BijectionError, match="line 8: a division or remainder by zero"):
        assert_bijective(f"{tmp_path / 'k.py'}::f", n="num_pids", grids=[3])


def line_of(words, after=0):
    return next(k for k, line in enumerate(LINES, 1) if words in line and k > after)


@pytest.mark.parametrize(
    ("function", "at", "reason"),
    [
        ("softmax", "def softmax", "answer=tile_m,tile_n"),
        ("by_table", "pid = tl.load(", "after the first memory access"),
        ("by_float", "pid * 1.5", "float"),
        ("as_it_came", "", "as it came"),
    ],
)
def test_what_cannot_be_extracted_is_refused_with_its_line(function, at, reason):
    with pytest.raises(LanguageError, match=reason) as caught:
        assert_bijective(f"{FILE}::{function}")
    start = line_of(f"def {function}(")
    line = line_of(at.rstrip("\n") or "program_id(0)", start - 1)
    assert f"{FILE}:{line}:" in str(caught.value)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("pid = tl.program_id(0)\n    pid = helper(pid)", "not a function of the language"),
        ("pid = tl.program_id(0) + n - n", "n has no value"),
        ("b = tl.program_id(0)\n    pid_m, pid_n, pid = b, b, b\n    pid_m += q", "q has no value"),
        ("while True:\n        pid = tl.program_id(0)", "'while'"),
        ("pid = tl.program_id(n) + 1", "literal 0, 1 or 2"),
        ("pid = loops(tl.program_id(0))", "returns from inside"),
        ("pid = again(tl.program_id(0))", "more than 50 calls"),
        ("pid = one(tl.program_id(0), 1)", "does not fit one"),
    ],
)
def test_odd_kernels_are_refused(tmp_path, body, reason):
    helpers = (
        "@triton.jit\ndef loops(a):\n    for i in range(3):\n        return a\n    return a\n"
        "@triton.jit\ndef again(a):\n    return again(a)\n@triton.jit\ndef one(a):\n    return a\n"
    )
    (tmp_path / "k.py").write_text(
        f"import triton\nimport triton.language as tl\n{helpers}"
        f"@triton.jit\ndef k(p, n):\n    {body}\n    tl.store(p + pid, 1)\n"
    )
    with pytest.raises(SwizzleSimError, match=reason):
        assert_bijective(f"{tmp_path / 'k.py'}::k")


def test_what_a_loop_carries_from_trip_to_trip_is_kept(tmp_path):
    (tmp_path / "k.py").write_text(
        "import triton\nimport triton.language as tl\n@triton.jit\ndef f(pid):\n    a = 0\n    b = 0\n"
        "    for i in range(3):\n        a = b\n        b = pid\n        c = i\n    return a\n"
    )
    assert_bijective(f"{tmp_path / 'k.py'}::f")
    assert "c =" not in read_prologue(tmp_path / "k.py", "f").text.text


def test_coordinates_in_either_order_and_under_other_names(tmp_path):
    (tmp_path / "k.py").write_text(
        "import triton\nfrom triton.language import program_id, num_programs, store\nimport triton.language as ttl\n"
        "@triton.jit\ndef swapped(p):\n    pid_n = ttl.program_id(0)\n    pid_m = program_id(axis=1)\n"
        "    pid_n = num_programs(0) - 1 - pid_n\n    ttl.store(p + pid_m + pid_n, 1)\n"
        "@triton.jit\ndef named(p):\n    row = ttl.program_id(0)\n    col = ttl.program_id(1)\n"
        "    row = ttl.num_programs(0) - 1 - row\n    ttl.store(p + row + col, 1)\n"
    )
    assert_bijective(f"{tmp_path / 'k.py'}::swapped")
    assert_bijective(f"{tmp_path / 'k.py'}::named", answer=("row", "col"))
    assert_bijective(f"{tmp_path / 'k.py'}::named", answer="row, col", grids=[(3, 5)])
    with pytest.raises(BijectionError, match="outside"):
        assert_bijective(f"{tmp_path / 'k.py'}::named", answer="col, row", grids=[(3, 5)])


ALIASED = """
import triton
import triton.language as tl


@triton.jit
def tile_v1(pid, rows, cols, SIZE: tl.constexpr):
    first = pid // (SIZE * cols) * SIZE
    high = tl.minimum(rows - first, SIZE)
    within = pid % (SIZE * cols)
    return first + within % high, within // high


tile = tile_v1


@triton.jit
def gemm(c, rows, cols, SIZE: tl.constexpr):
    pid_m, pid_n = tile(tl.program_id(0), rows, cols, SIZE)
    tl.store(c + pid_m * cols + pid_n, 1.0)
"""


def test_a_helper_under_a_second_name_is_read(tmp_path):
    (tmp_path / "aliased.py").write_text(ALIASED)
    grid = Grid((35,), (5, 7))
    got = order(tmp_path / "aliased.py", "gemm", grid, rows=5, cols=7, SIZE=4)
    np.testing.assert_array_equal(got, Swizzle.parse(family("group_m(size=4)")).permutation(grid, 8))
    assert {one.name for one in check_file(tmp_path / "aliased.py")} == {"aliased.py::tile_v1", "aliased.py::gemm"}
