"""The command line as typed: a process of its own, in an empty folder."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

COMMAND = shutil.which("swizzle-sim", path=str(Path(sys.executable).parent)) or "swizzle-sim"


class Answer(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)


@pytest.fixture
def typed(tmp_path):
    """Run ``swizzle-sim`` with the given words; gives exit status, stdout and stderr."""

    def run(*words, stdin=""):
        done = subprocess.run([COMMAND, *words], input=stdin, capture_output=True, text=True, cwd=tmp_path, timeout=300)
        assert "Traceback" not in done.stderr
        return Answer(done.returncode, done.stdout, done.stderr)

    return run
