"""Do the files that say who made this, under which terms, and on what machine say it right?"""

import getpass
import os
import re
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from swizzle_sim.base.release import version
from swizzle_sim.cli.app import app
from swizzle_sim.hardware.doctor import report_markdown, scrubbed
from tests.docs.typed import ROOT

CFF = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))


def test_one_licence_everywhere():
    assert "Apache License" in (ROOT / "LICENSE").read_text() and "Version 2.0" in (ROOT / "LICENSE").read_text()
    assert (CFF["license"], CFF["version"]) == ("Apache-2.0", version())
    assert re.search(r"^license = Apache-2.0$", (ROOT / "setup.cfg").read_text(), re.M)


@pytest.fixture
def private(monkeypatch, tmp_path):
    """A user with a name, a home, keys, and a cache inside of that home."""
    home = tmp_path / "home" / "ada.lovelace"
    home.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("LOGNAME", "ada.lovelace")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-to-be-told")
    monkeypatch.setenv("NUMBA_NUM_THREADS", "1234567")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    return home


def test_a_report_is_a_table_without_names_paths_keys_or_values(private, monkeypatch):
    monkeypatch.setattr(
        "swizzle_sim.hardware.doctor.checks",
        lambda: iter([("GPU", "ok", "MI300X of ada.lovelace"), ("C++ compiler", "ok", str(private / "bin/c++"))]),
    )
    text = report_markdown()
    lines = text.splitlines()
    assert lines[1:3] == ["| what | found |", "| --- | --- |"]
    assert all(line.count("|") == 3 for line in lines[1:])
    for secret in ("ada", "lovelace", str(private), "sk-not", "1234567"):
        assert secret not in text
    assert os.uname().nodename not in text.replace("|", " ").split()
    assert "| C++ compiler | found |" in text
    assert "NUMBA_NUM_THREADS" in text
    assert f"| swizzle-sim | {version()}" in text


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("/home/ada/x and /Users/bob/y", "~/x and ~/y"),
        (r"C:\Users\eve\z", r"~\z"),
        (f"{Path.home()}/w" if len(str(Path.home())) > 1 else "w", "~/w" if len(str(Path.home())) > 1 else "w"),
    ],
)
def test_home_folders_are_struck_and_a_user_name_as_a_word(text, kept, monkeypatch):
    assert scrubbed(text) == kept
    monkeypatch.setattr(getpass, "getuser", lambda: "grace")
    assert scrubbed("grace at graceful") == "USER at graceful"


def test_the_command_prints_the_block_alone(monkeypatch):
    monkeypatch.setattr("swizzle_sim.hardware.doctor.checks", lambda: iter([]))
    said = CliRunner().invoke(app, ["doctor", "--report"])
    assert said.exit_code == 0 and said.output.startswith("<!-- swizzle-sim doctor --report -->\n| what |")
