"""Has every document of ``--json`` the keys that docs/json.md gives it, and no others?"""

import json
import re
import sys

import pytest

from swizzle_sim.cli import main
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
    "ceiling": ["ceiling", "gemm", *SMALL, "--evaluations", "2", "--formulas", "2"],
    "sweep": ["sweep", "gemm", "K=128", "--over", "M,N", "--values", "512", "--swizzle", "row", "--backend", "serial"],
    "what-if": ["what-if", "gemm", *SMALL, "--set", "xcds=4", "--swizzle", "row", "--capacity", "--backend", "serial"],
    "runs": ["runs"],
}


def documented(command):
    """Top-level keys: those of the first code of a row, and what the command was asked for beside."""
    row = ROWS[command]
    keys = re.match(r"`([^`]+)`", row)[1].split(", ")
    return {*keys, *re.findall(r"also `(\w+)`", row)}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_document_has_the_keys_it_is_said_to_have(command, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["swizzle-sim", *COMMANDS[command], "--json"])
    with pytest.raises(SystemExit) as stopped:
        main()
    out = capsys.readouterr().out
    assert not stopped.value.code, out
    assert next(iter(json.loads(out))) == "schema_version"
    assert set(json.loads(out)) == {"schema_version", *documented(command)}


def test_errors_have_code_and_message(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["swizzle-sim", "score", "gem", "--swizzle", "row", "--json"])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    assert set(json.loads(capsys.readouterr().out)["error"]) == {"code", "message"}
