"""The command line in this process: no start-up for each command, and errors as exit statuses all the same."""

import sys
from typing import NamedTuple

import pytest

from swizzle_sim.cli.app import main


class Answer(NamedTuple):
    code: int
    out: str
    err: str


def runner(monkeypatch, capsys, folder):
    """Function that runs ``swizzle-sim`` with the given words in a folder."""
    monkeypatch.chdir(folder)

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["swizzle-sim", *words])
        with pytest.raises(SystemExit) as done:
            main()
        return Answer(done.value.code or 0, *capsys.readouterr())

    return run
