"""Does the table of other people's code count what `check` says of it?"""

from textwrap import dedent

from swizzle_benchmarks.evidence.remaps.packages import _results, table

REMAPS = """
    def exact(pid, num_pids):
        return pid % 8 * (num_pids // 8) + min(pid % 8, num_pids % 8) + pid // 8

    def naive(pid, num_pids):
        return pid % 8 * (num_pids // 8) + pid // 8

    def sized(pid, strange):
        return pid % 8 * strange + pid // 8
"""


def test_rows_and_reasons(tmp_path):
    (tmp_path / "remaps.py").write_text(dedent(REMAPS), encoding="utf-8")
    found = table({"here": list(_results(tmp_path))})
    assert "| here | 3 | 1 | 0 | 1 | 1 | 0 |" in found
    assert "| all | 3 | 1 | 0 | 1 | 1 | 0 |" in found
    assert "| A name has no value: give it one in a comment | 1 |" in found
