"""Is a remap found by where its tile flows, under any names, and is what cannot be read said with its line?"""

import pytest

from swizzle_sim.testing.run import check_file
from tests.testing.conftest import HEAD

KERNEL = """
@triton.jit
def kernel(x, tall, wide, A: tl.constexpr, B: tl.constexpr, GROUP_ROWS: tl.constexpr, FLAG: tl.constexpr):
    {first}
    p = tl.program_id(0)
    high, across = tl.cdiv(tall, A), tl.cdiv(wide, B)
    start = p // (GROUP_ROWS * across) * GROUP_ROWS
    size = {size}
    {one} = start + p % (GROUP_ROWS * across) % size
    {two} = p % (GROUP_ROWS * across) // size
    at = ({one} * A + tl.arange(0, A))[:, None] * wide + {two} * B + tl.arange(0, B)[None, :]
    tl.store(x + at, 1)
"""
RIGHT = {"size": "min(high - start, GROUP_ROWS)", "one": "out_block", "two": "batch", "first": "pass"}


@pytest.fixture
def checked(written):
    return lambda text, name="k.py": list(check_file(written(text, name, HEAD if name == "k.py" else "")))


@pytest.mark.parametrize("names", [("out_block", "batch"), ("tm", "tn"), ("tile_row", "tile_col")])
def test_a_kernel_whose_names_nobody_knows(checked, names):
    right = {**RIGHT, "one": names[0], "two": names[1]}
    (found,) = checked(KERNEL.format(**right))
    assert (found.status, f"of {names[0]} and {names[1]}" in found.message) == ("passed", True), found.message
    (found,) = checked(KERNEL.format(**{**right, "size": "GROUP_ROWS"}))
    assert found.status == "failed", found.message


def test_a_size_that_a_flag_replaces_is_one_of_all_workgroups(checked):
    (found,) = checked(KERNEL.format(**{**RIGHT, "first": "if FLAG:\n        wide = tall"}))
    assert found.status == "passed", found.message
    # a size that is changed means one thing before and another after
    late = KERNEL.format(**RIGHT).replace(
        "    start =", "    wide = wide // 2\n    across = tl.cdiv(wide, B)\n    start ="
    )
    (found,) = checked(late)
    assert found.status != "passed" or "proved" not in found.message


def test_a_helper_loses_what_it_divides(checked):
    half = "\n@triton.jit\ndef half(v):\n    return v // 2\n"
    text = KERNEL.format(**RIGHT).replace("(out_block * A", "(half(out_block) * A") + half
    (found,) = checked(text)
    assert found.status == "skipped" or "supposing" in found.message, found.message


GROUPED = "  int first = pid / (4 * cols) * 4, h = min(rows - first, 4), in = pid % (4 * cols);\n"
HANDED = {
    "int* m, int* n": "*m = first + in % h;\n  *n = in / h;",
    "int2& out": "out.x = first + in % h;\n  out.y = in / h;",
    "int (&out)[2]": "out[0] = first + in % h;\n  out[1] = in / h;",
    "Args a": "a.at = { first + in % h, in / h };",
}


@pytest.mark.parametrize("handed", HANDED)
def test_no_tile_that_is_handed_out_is_dropped(checked, handed):
    options = "// swizzle: rows=num_pid_m cols=num_pid_n\n"
    text = (
        f"{options}__device__ void place(int pid, int rows, int cols, {handed}) {{\n{GROUPED}  {HANDED[handed]}\n}}\n"
    )
    (found,) = checked(text, "k.cu")
    if "*" in handed:
        assert (found.status, "proved" in found.message) == ("passed", True), found.message
    else:
        assert (found.status, ":4:" in found.message) == ("error", True), found.message


DIVIDED = """
struct Params { cutlass::FastDivmod major, minor; };
// swizzle: major=num_pid_n answer=row,col
__device__ cute::tuple<int, int> place(int tile_idx, Params const& params) {
  int row, col;
  row = params.major.divmod(col, tile_idx);
  %s
  return {row, col};
}
"""


def test_objects_that_divide(checked):
    (found,) = checked(DIVIDED % "", "k.hpp")
    assert (found.status, "proved" in found.message) == ("passed", True), found.message
    (found,) = checked(DIVIDED % "params.major(row, col, tile_idx + 1);", "k.hpp")
    assert found.status == "failed", found.message
    own = "struct FastDivmod { int divmod(int& r, int x) { r = 0; return x; } };\n"
    (found,) = checked(own + DIVIDED % "", "k.hpp")
    assert found.status == "error", found.message


FLAT = """
@triton.jit
def flat(c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SMS: tl.constexpr):
    start = tl.program_id(0)
    high, wide, steps = tl.cdiv(M, BM), tl.cdiv(N, BN), tl.cdiv(K, BK)
    each = high * wide // SMS
    if start < high * wide % SMS:
        each += 1
    tile = start - SMS
    k = -1
    pid_m = 0
    pid_n = 0
    for _ in range(0, steps * each):
        k = tl.where(k == steps - 1, 0, k + 1)
        if k == 0:
            tile += {step}
            pid_m = high - 1 - tile // wide
            pid_n = tile % {by}
        if k == steps - 1:
            tl.store(c + (pid_m * BM + tl.arange(0, BM))[:, None] * N + pid_n * BN + tl.arange(0, BN)[None, :], 1)
"""


def test_a_flat_loop_over_the_steps_of_all_tiles(checked):
    (found,) = checked(FLAT.format(step="SMS", by="wide"))
    assert (found.status, "supposing that SMS programs are launched (" in found.message) == ("passed", True)
    (found,) = checked(FLAT.format(step="SMS", by="high"))
    assert found.status == "failed", found.message
    (found,) = checked(FLAT.format(step="2 * SMS", by="wide"))
    assert found.status == "skipped", found.message
