"""Does the table of other people's code count what `check` says of it?"""

import json
from textwrap import dedent

from swizzle_benchmarks.evidence.remaps.packages import _results, table
from swizzle_benchmarks.evidence.remaps.public import page

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


def test_the_page_of_folders_has_what_was_not_run_as_dashes(tmp_path):
    row = {"verdict": "proved", "status": "passed", "seconds": 0.5, "message": "", "rule": ""}
    skipped = {"verdict": "", "status": "skipped", "seconds": 0.1, "message": "n has no value", "rule": "SW201"}
    for name, results in (("stk", [row, skipped]), ("attorch", [])):
        (tmp_path / f"{name}.json").write_text(json.dumps({"results": results}), encoding="utf-8")
    text = page(tmp_path, None)
    assert "| 2 | 1 | 0 | 0 | 1 | 0 | - |" in text
    assert "| ROCm/aiter | e4048607a535 | all | - | - | - | - | - | - | - |" in text
    assert "Passed over, with nothing found: BobMcDear/attorch." in text
    assert "| A name has no value: give it one in a comment | 1 |" in text
