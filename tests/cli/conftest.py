"""The command line as typed in an empty folder, in a process of its own where that is the point."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.in_process import Answer

COMMAND = shutil.which("swizzle-sim", path=str(Path(sys.executable).parent)) or "swizzle-sim"


@pytest.fixture
def spawned(tmp_path):
    """As ``typed``, in a process of its own: about a second each."""

    def run(*words, stdin="", **environment):
        done = subprocess.run(
            [COMMAND, *words],
            input=stdin,
            capture_output=True,
            text=True,
            cwd=tmp_path,
            timeout=300,
            env={**os.environ, **environment},
        )
        assert "Traceback" not in done.stderr, done.stderr
        return Answer(done.returncode, done.stdout, done.stderr)

    return run
