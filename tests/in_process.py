"""The command line in this process: no start-up for each command, and errors as exit statuses all the same.

An error that is no exit status, which a user would see as a traceback, fails the test.
"""

import io
import json
import sys
from typing import NamedTuple

import pytest

from swizzle_sim.cli.app import main


class Answer(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)


def runner(monkeypatch, capsys, folder):
    """Function that runs ``swizzle-sim`` with the given words, and text on stdin, in a folder."""
    monkeypatch.chdir(folder)

    def run(*words, stdin=""):
        capsys.readouterr()
        monkeypatch.setattr(sys, "argv", ["swizzle-sim", *map(str, words)])
        monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        with pytest.raises(SystemExit) as done:
            main()
        return Answer(done.value.code or 0, *capsys.readouterr())

    return run
