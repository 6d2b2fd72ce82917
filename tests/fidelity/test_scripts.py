"""Do the scripts say what they do before they do it?"""

import sys

import pytest

from benchmarks.fidelity import (
    compile_stencils,
    measure_l1,
    measure_machine,
    measure_waits,
    openings,
    power,
    trips,
)

SCRIPTS = (
    *(measure_l1, measure_machine, measure_waits),
    *(compile_stencils, openings, power, trips),
)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.__name__.rpartition(".")[2])
def test_help_is_help(script, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["script", "--help"])
    with pytest.raises(SystemExit, match="0"):
        script.main()
    assert script.__name__ in capsys.readouterr().out


def test_a_file_that_is_not_there(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["script", "nothing.sass"])
    with pytest.raises(SystemExit, match=r"there is no file nothing\.sass"):
        trips.main()
