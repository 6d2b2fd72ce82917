"""Does Ctrl-C name the command that goes on, from when there is something to go on with?"""

import shlex

import pytest
from typer.testing import CliRunner

from swizzle_sim.base.interruption import go_on_with, how
from swizzle_sim.cli.app import app


@pytest.fixture
def stored(tmp_path):
    folder = tmp_path / "run 1"
    folder.mkdir()
    yield folder
    go_on_with(None, "")


def test_nothing_stored(stored):
    go_on_with(stored, "history.sqlite")
    assert how(["suite", "gemm", "--out", str(stored)]) == (
        f"start again with: swizzle-sim suite gemm --out '{stored}'"
    )  # the folder alone is no run
    go_on_with(None, "history.sqlite")
    assert how(["score", "gemm"]) == "start again with: swizzle-sim score gemm"


@pytest.mark.parametrize("out", (["--out", "{}"], ["-o", "{}"], ["--out={}"], ["-o{}"], []))
def test_stored(stored, out):
    go_on_with(stored, "history.sqlite")
    (stored / "history.sqlite").touch()
    words = ["suite", *(word.format(stored) for word in out), "gemm", "--json"]
    assert how(words) == f"go on with: swizzle-sim suite gemm --json --resume '{stored}'"


@pytest.mark.parametrize("again", (["--resume", "{}"], ["--resume={}"]))
def test_resumed(stored, again):
    go_on_with(stored, "history.sqlite")
    (stored / "history.sqlite").touch()
    assert how(["suite", *(word.format(stored) for word in again)]).count("--resume") == 1


@pytest.mark.parametrize(
    ("words", "runs", "file"),
    [
        (("suite", "softmax"), "swizzle_sim.search.suite.score_suite", "sweep.sqlite"),
        (("sweep", "gemm", "--over", "K", "--values", "64,128"), "swizzle_sim.search.jobs.run_points", "sweep.sqlite"),
    ],
)
def test_a_command_that_is_interrupted_has_said_where_it_stores(stored, monkeypatch, words, runs, file):
    def interrupted(*given, **more):
        (stored / file).touch()
        raise KeyboardInterrupt

    monkeypatch.setattr(runs, interrupted)
    done = CliRunner().invoke(app, [*words, "--out", str(stored)])
    assert done.exit_code == 130
    resumed = shlex.join(["swizzle-sim", *words, "--resume", str(stored)])
    assert how([*words, "--out", str(stored)]) == f"go on with: {resumed}"


def test_what_stands_behind_two_dashes_is_no_option(stored):
    go_on_with(stored, "history.sqlite")
    (stored / "history.sqlite").touch()
    assert how(["optimize", "--", "gemm"]) == f"go on with: swizzle-sim optimize --resume '{stored}' -- gemm"
    assert how(["optimize", "--", "-o"]).endswith(" -- -o")
