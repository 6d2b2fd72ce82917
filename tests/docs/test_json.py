"""Has every document of ``--json`` the keys that docs/json.md gives it, and no others?"""

import re

import pytest

from tests.docs.substitutions import SIZES
from tests.docs.typed import ROOT

ROWS = dict(re.findall(r"^\| `([^`]+)`(?:, `[^`]+`)* \| (.*) \|$", (ROOT / "docs" / "json.md").read_text(), re.M))
SMALL = SIZES.split()
COMMANDS = {
    "gpus": ["gpus"],
    "show": ["show", "gemm", *SMALL],
    "check": ["check", "row", "--grid", "8x8"],
    "score": ["score", "gemm", *SMALL, "--swizzle", "row"],
    "optimize --proposer search": ["optimize", "gemm", *SMALL, "--proposer", "search", "--evaluations", "2"],
    "optimize --proposer ceiling": ["optimize", "gemm", *SMALL, "--proposer", "ceiling", "--evaluations", "2"],
    "sweep": ["sweep", "gemm", "K=128", "--over", "M,N", "--values", "512", "--swizzle", "row", "--backend", "serial"],
    "policy": ["policy", "gemm", "K=128", "--over", "M", "--values", "512", "--swizzle", "row", "--backend", "serial"],
    "fleet": ["fleet", "softmax", "--replay", "lockstep", "--orders", "1", "--no-compile", "--backend", "serial"],
    "runs": ["runs"],
}


def documented(command):
    """Top-level keys: those of the first code of a row, and what the command was asked for beside."""
    row = ROWS[command]
    keys = re.match(r"`([^`]+)`", row)[1].split(", ")
    return {*keys, *re.findall(r"also `(\w+)`", row)}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_document_has_the_keys_it_is_said_to_have(command, typed):
    answer = typed(*COMMANDS[command], "--json")
    assert not answer.code, answer.out
    assert next(iter(answer.json)) == "schema_version"
    assert set(answer.json) == {"schema_version", *documented(command)}
