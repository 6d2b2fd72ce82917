"""Is what `check` cannot read said by its line, with the comment that would help, and what is no remap left alone?"""

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
