"""Does a change that only moves code leave every number as it was? If one is meant to change: `tests.golden.record`."""

import json

import pytest

from tests.golden.commands import commands
from tests.golden.record import DATA, settled

COMMANDS = commands()


@pytest.mark.parametrize("name", COMMANDS)
def test_the_json_is_as_recorded(name, typed):
    answer = typed(*COMMANDS[name])
    assert answer.code == 0, answer.err
    assert settled(answer.json) == json.loads((DATA / f"{name}.json").read_text())


def test_every_file_is_of_a_command():
    assert {path.stem for path in DATA.glob("*.json")} == set(COMMANDS)
