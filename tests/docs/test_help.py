"""Does the command line teach: tasks, examples, completion, a version, and plain text where colour has no place?"""

import contextlib
import os
import pty
import re
import subprocess

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from swizzle_sim.base.release import commit, install_hint, version
from swizzle_sim.cli.app import EXAMPLES, GONE, LAB, MOVED, OTHERS, TASKS, app, task_of
from swizzle_sim.cli.arguments import known_families, known_gpus
from swizzle_sim.language import Swizzle, family
from tests.cli.conftest import COMMAND
from xcd_model import gpu


def commands_of(group):
    return {name: group.get_command(None, name) for name in group.list_commands(None)}


VISIBLE = commands_of(get_command(app))
COMMANDS = {name: one for name, one in {**VISIBLE, **commands_of(VISIBLE["lab"])}.items() if name != "lab"}


def test_every_command_has_a_task_and_an_example():
    assert OTHERS not in map(task_of, VISIBLE), "name the new command in swizzle_sim.cli.app.TASKS"
    assert set(EXAMPLES) == set(COMMANDS), "and show how it is typed in EXAMPLES"
    for name, examples in EXAMPLES.items():
        assert all(command.startswith(f"swizzle-sim {' '.join(as_typed(name))}") for command, _ in examples)


def test_there_are_few_commands_and_the_everyday_ones_come_first():
    assert len(VISIBLE) <= 22 and list(VISIBLE)[: len(TASKS["Every day"])] == [
        *("score", "check", "optimize", "rewrite", "bundle", "import", "report", "explore", "runs")
    ]


def as_typed(name):
    return ["lab", name] if name in LAB else [name]


@pytest.mark.parametrize("name", MOVED)
def test_an_earlier_name_still_works_and_says_the_new_one(name):
    done = CliRunner().invoke(app, [name, "--help"])
    assert done.exit_code == 0 and f"{name} is now: swizzle-sim {MOVED[name]}\n" in done.stderr


@pytest.mark.parametrize("name", GONE)
def test_an_earlier_name_with_nothing_behind_it_says_what_to_do(name):
    assert GONE[name] in str(CliRunner().invoke(app, [name, "x"]).exception)


def test_help_shows_tasks_and_whole_examples():
    shown = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "100"}).output
    assert [task for task in TASKS if f" {task}:\n" in shown] == list(TASKS)
    assert all(f"   {name} " in shown for name in VISIBLE)
    for name in COMMANDS:
        shown = CliRunner().invoke(app, [*as_typed(name), "--help"], env={"COLUMNS": "60"}).output
        for command, _ in EXAMPLES[name]:
            assert command in shown


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_help_fits_a_screen_and_names_every_option(name):
    for width in ("80", "140"):
        words = [*(as_typed(name) if name else ()), "--help"]
        shown = CliRunner().invoke(app, words, env={"COLUMNS": width}).output
        lines = shown.partition(" Examples:")[0].splitlines()
        assert len(shown.splitlines()) <= 50 and max(map(len, lines)) <= int(width)
        for one in [one for one in COMMANDS[name].params if not getattr(one, "hidden", False)] if name else ():
            assert (one.metavar or one.name.upper() if one.param_type_name == "argument" else one.opts[0]) in shown


def test_ten_options_of_optimize_come_first_and_those_of_a_proposer_stand_together():
    shown = CliRunner().invoke(app, ["optimize", "--help-all"], env={"COLUMNS": "120"}).output
    common, search, llm = re.split(r"Options of --proposer (?:llm|search)", shown)
    assert "--gpu" in common and "--max-dollars" not in common and "--held-out" not in common
    assert "--max-dollars" in llm and "--held-out" in search and "--reply-tokens" not in llm
    shown = [one for one in COMMANDS["optimize"].params if one.param_type_name == "option" and not one.hidden]
    assert len([one for one in shown if not one.rich_help_panel]) == 10


def test_details_of_the_models_come_from_a_file_and_what_is_typed_counts(tmp_path):
    file = tmp_path / "llm.toml"
    file.write_text('model = ["openai/a"]\niterations = 3\nstructured = true\n')
    context = COMMANDS["optimize"].make_context("optimize", ["gemm", "--iterations", "4", "--llm", str(file)])
    assert {name: context.params[name] for name in ("model", "iterations", "structured", "tries")} == {
        **{"model": ["openai/a"], "iterations": 4, "structured": True, "tries": None}
    }
    for text, says in (("iteration = 3", "iterations"), ("iterations = 'x'", "--iterations"), ("= 3", "Invalid")):
        file.write_text(text)
        done = CliRunner().invoke(app, ["optimize", "gemm", "--llm", str(file)])
        assert says in str(done.exception), done.exception


def test_no_help_text_is_taken_for_markup():
    """Rich would read [ns] as a style and leave it out."""
    for name, command in COMMANDS.items():
        texts = [command.help or "", *(param.help or "" for param in command.params)]
        assert not [text for text in texts if "[" in text], name


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("score gem", {"gemm", "gemm_cluster", "gemm_dynamic", "gemm_jagged", "gemm_splitk", "gemm_streamk"}),
        ("score gemm --gpu mi300x-c", {"mi300x-cpx-nps1", "mi300x-cpx-nps4"}),
        ("score gemm --swizzle contiguous+sna", {"contiguous+snake"}),
        ("check snak", {"snake"}),
        ("report runs/mi", {"runs/mine"}),
        ("optimize gemm --resume runs/mi", {"runs/mine"}),
        ("optimize gemm --proposer s", {"search"}),
        ("lab coun", {"counters"}),
    ],
)
def test_completion_offers(typed, offered, tmp_path, monkeypatch):
    (tmp_path / "runs" / "mine").mkdir(parents=True)
    (tmp_path / "runs" / "mine" / "history.sqlite").touch()
    monkeypatch.chdir(tmp_path)
    words = ["swizzle-sim", *typed.split(" ")]
    asked = {"COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1), "_SWIZZLE_SIM_COMPLETE": "complete_bash"}
    said = CliRunner().invoke(app, [], env=asked, prog_name="swizzle-sim").output
    assert set(said.split()) == offered


def test_what_is_offered_is_taken():
    assert all(gpu(name).xcds >= 1 for name in known_gpus())
    assert all(Swizzle.parse(family(name)) for name in known_families())


def test_the_version_names_the_commit_of_a_checkout(tmp_path):
    said = CliRunner().invoke(app, ["--version"]).output
    assert said.startswith(f"swizzle-sim {version()}")
    assert commit(tmp_path) is None  # no checkout, though it may lie in somebody's
    for words in ("init -q", "-c user.name=a -c user.email=a commit -q --allow-empty -m a"):
        subprocess.run(["git", "-C", str(tmp_path), *words.split()], check=True)
    assert re.fullmatch(r"[0-9a-f]{9}", commit(tmp_path))
    (tmp_path / "file").touch()
    subprocess.run(["git", "-C", str(tmp_path), "add", "file"], check=True)
    assert commit(tmp_path).endswith("-dirty")


def at_a_terminal(words, **environment):
    """Output of a command whose stdout and stderr are one terminal."""
    ours, theirs = pty.openpty()
    kept = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "TERM", "FORCE_COLOR")}
    started = subprocess.Popen([COMMAND, *words], stdout=theirs, stderr=theirs, env={**kept, **environment})
    os.close(theirs)
    said = b""
    with contextlib.suppress(OSError):  # Linux says so when the other end is closed
        while part := os.read(ours, 4096):
            said += part
    assert started.wait(60) == 0
    os.close(ours)
    return said.decode()


COLOUR = re.compile(r"\x1b\[[0-9;]*(?:3[0-8]|4[0-8]|9[0-7])[0-9;]*m")


def test_no_colour_where_it_was_declined():
    plain = at_a_terminal(["gpus"], TERM="dumb")
    assert "\x1b" not in plain and "mi300x" in plain
    assert not COLOUR.search(at_a_terminal(["gpus"], TERM="xterm-256color", NO_COLOR="1"))


def test_what_an_extra_is_installed_with():
    assert install_hint("llm") == "pip install -e '.[llm]' in the checkout"
    assert install_hint() == "pip install -e . in the checkout"
