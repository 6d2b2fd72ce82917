"""The short form of `tests.attack.kills`: few kills in a process that forks; by ``SWIZZLE_SIM_ATTACKS`` all kinds."""

import json
import subprocess
import sys

import pytest

from tests.attack.conftest import TIMES


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
def test_nothing_is_lost_doubled_or_asked_twice():
    kills = 2 if TIMES == 1 else 3 * TIMES
    modes = ["families"] if TIMES == 1 else ["families", "search", "llm"]
    command = [sys.executable, "-m", "tests.attack.kills", "--kills", str(kills), "--seed", "5", "--modes", *modes]
    done = subprocess.run(command, capture_output=True, text=True, timeout=3600)
    assert done.returncode == 0, done.stderr + done.stdout
    found = json.loads(done.stdout)
    assert found["problems"] == []
    for counts in found["kills"].values():
        assert counts["landed"] >= kills and not counts.get("asked twice")
