"""Is what `check` cannot read said by its line, with the comment that would help, and what is no remap left alone?"""

import re

import pytest

from swizzle_sim.testing import BijectionError, assert_bijective
from swizzle_sim.testing.run import check_file
from tests.testing.test_constructs import results


def test_what_is_plainly_no_remap_is_not_mentioned(written):
    path = written(
        """
        @triton.jit
        def softmax(x, N, BLOCK: tl.constexpr):
            row = tl.program_id(0)
            tl.store(x + row * N + tl.arange(0, BLOCK), 1)

        @triton.jit
        def heads(x, H, N):
            pid = tl.program_id(0)
            batch, head = pid // H, pid % H
            tl.store(x + batch * N + head, 1)

        def scale(x, y):
            return x // 2 * y
        """
    )
    assert results(path) == {}


def test_what_is_skipped_says_why_and_what_to_add(written):
    path = written(
        """
        @triton.jit
        def sized(pid, strange, NUM_XCDS: tl.constexpr = 8):
            return pid % NUM_XCDS * strange + pid // NUM_XCDS

        @triton.jit
        def by_float(pid, num_pids):
            return pid % 8 * (num_pids / 8) + pid // 8

        @triton.jit
        def late(x, num_pids):
            at = tl.load(x + tl.program_id(0))
            pid = tl.program_id(0)
            pid = pid % 8 * (num_pids // 8) + pid // 8 + at
            tl.store(x + pid, at)
        """
    )
    found = results(path)
    assert {one.status for one in found.values()} == {"skipped"}
    assert found["sized"].advice == "# swizzle: strange=..."
    assert ":11:" in found["by_float"].message
    assert "'/'" in found["by_float"].message
    assert "begin" in found["late"].advice
    assert ":16:" in found["late"].message


def test_statements_between_two_comments(written):
    path = written(
        """
        SPAN = 8
        def make(table):
            for x in table:
                pid = anything(x)
                # swizzle: begin wg=pid last=num_pids answer=place
                xcd = wg % SPAN
                place = xcd * (last // SPAN) + min(xcd, last % SPAN) + wg // SPAN
                # swizzle: end
                yield place
        """
    )
    (name,) = results(path)
    assert results(path)[name].status == "passed", results(path)
    wrong = path.read_text().replace("min(xcd, last % SPAN) + ", "")
    path.write_text(wrong)
    assert results(path)[name].status == "failed"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("# swizzle: begin\npid = 1\n", "begin without end"),
        ("# swizzle: end\n", "end without begin"),
        ("# swizzle: begin\n# swizzle: begin\n", "begin without end"),
        ("# swizzle: grids=\n", ""),
        ("# swizzle: the tiles of a group, as in the paper\n", ""),
        ("def f(:\n", "no Python"),
        ("\0", "no Python"),
    ],
    ids=str,
)
def test_bad_files_are_one_clear_line(written, text, said):
    path = written(text, head="")
    found = list(check_file(path))
    assert len(found) == bool(said)
    assert all(one.status == "error" and said in one.message and "\n" not in one.message for one in found)


def test_a_name_of_the_directive_that_nothing_reads_is_an_error(written):
    found = results(written("# swizzle: nonsense=3\n@triton.jit\ndef f(pid):\n    return pid // 2 * 2 + pid % 2\n"))[
        "f"
    ]
    assert found.status == "error"
    assert "nonsense" in found.message
    with pytest.raises(BijectionError):
        assert_bijective("pid = pid // 2")


SPLIT = "int w = bid % 8;\nint l = bid / 8;\nint x = w * (m * n / 8) + l;\n"
TWO = "__device__ void place(int bid, int m, int n, int& row, int& col) {\n"
ONE = "__device__ int place(int bid, int m, int n) {\n"
KERNEL = (
    "__global__ void gemm(float* c, int m, int n) {\nint tile_m, tile_n;\nplace(blockIdx.x, m, n, tile_m, tile_n);\n"
    "c[tile_m * n + tile_n] = 1;\n}\n"
)
REFUSED = {
    "return before it is handed out": (
        f"{TWO}for (int k = 0; k < m; k++) {{ if (k > bid) return; }}\n{SPLIT}row = x / n;\ncol = x % n;\n}}\n",
        "place returns from inside this statement",
    ),
    "kernel that calls it": (
        f"{TWO}{SPLIT}switch (m) {{ case 0: return; }}\nrow = x / n;\ncol = x % n;\n}}\n{KERNEL}",
        "whose line 5, 'return;', is not modelled",
    ),
    "returns in a switch": (
        f"{ONE}{SPLIT}switch (m) {{\ncase 1: return x;\ndefault: return x;\n}}\n}}\n",
        ":6:1: 'return x;' is not modelled",
    ),
    "jump": (f"{ONE}{SPLIT}if (x > 3) goto end;\nx += 0;\nend: return x;\n}}\n", ":5:1: 'goto end;' is not modelled"),
    "jump before the tile": (
        f"__global__ void gemm(float* c, int m, int n) {{\nint bid = blockIdx.x;\n{SPLIT}if (x > 3) goto end;\n"
        "end: int pid_m = x / n;\nint pid_n = x % n;\nc[pid_m * n + pid_n] = 1;\n}\n",
        ":6:1: 'goto end;' is not modelled",
    ),
}


@pytest.mark.parametrize("name", REFUSED, ids=str)
def test_a_remap_with_a_construct_that_is_not_modelled_is_not_dropped(tmp_path, name):
    text, said = REFUSED[name]
    path = tmp_path / "k.hip"
    path.write_text(text, encoding="utf-8")
    found = list(check_file(path))
    assert [one.status for one in found] == ["skipped"] * len(re.findall("__(?:device|global)__", text))
    assert any(said in one.message for one in found), found


def test_two_coordinates_of_three_axes_are_skipped(written):
    path = written(
        """
        @triton.jit
        def add_heads(c, ROWS, WIDE, BLOCKS):
            pid_m = tl.program_id(0)
            head_block = tl.program_id(2)
            head = head_block // BLOCKS
            pid_n = head_block - head * BLOCKS
            tl.store(c + (pid_m * ROWS + tl.program_id(1)) * WIDE + pid_n + head, 1)
        """
    )
    (found,) = check_file(path)
    assert found.status == "skipped" and "two coordinates of a launch with three axes" in found.message


def test_a_name_of_the_first_item_of_a_tile_is_no_tile(tmp_path):
    path = tmp_path / "k.hip"
    path.write_text(
        "template <int B> __device__ void at(int pid, int m, int n, int& pid_m, int& pid_n) {\n"
        "const int rows = (m + B - 1) / B, columns = (n + B - 1) / B;\n"
        "pid_m = pid / columns + pid % columns * 0;\npid_n = pid % columns;\npid_m *= B;\npid_n *= B;\n}\n"
    )
    assert [(one.status, one.rule) for one in check_file(path)] == [("skipped", "SW202")]
