"""The short form of `tests.attack.kills`: some kills of each kind of run, in a process that forks."""

import json
import subprocess
import sys

import pytest

from tests.attack.conftest import TIMES


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
def test_nothing_is_lost_doubled_or_asked_twice():
    command = [sys.executable, "-m", "tests.attack.kills", "--kills", str(3 * TIMES), "--seed", "5"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=3600)
    assert done.returncode == 0, done.stderr + done.stdout
    found = json.loads(done.stdout)
    assert found["problems"] == []
    for counts in found["kills"].values():
        assert counts["landed"] >= 3 * TIMES and counts["asked twice"] == 0
