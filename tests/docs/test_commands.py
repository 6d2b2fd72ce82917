"""Do the commands of README and docs do what they say: right names, right options, no error?"""

import importlib.util
import re
import shlex
import sys
import time

import pytest
from typer.main import get_command

from swizzle_benchmarks.suite.gemm import gemm
from swizzle_sim.cli import main
from swizzle_sim.cli.app import app
from swizzle_sim.search.strategies.families import optimize
from tests.docs.scene import set_scene
from tests.docs.substitutions import PARSED, SMALLER, STATUS, apart, only_parsed, smaller
from tests.docs.typed import ROOT, Typed, all_typed, blocks, pages
from xcd_model import gpu

COMMANDS = all_typed()
OURS = [one for one in COMMANDS if one.words[0] == "swizzle-sim" and one.words[1] != "COMMAND"]
RUN = list({(apart(one.text), one.shown): one for one in OURS if not only_parsed(one.text)}.values())


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished") / "run"
    optimize(gemm(M=1024, N=1024, K=128), gpu("mi300x"), folder, threads=1, replay="lockstep")
    return folder


def parse(words):
    """Hold words against the command's own arguments and options, without running it."""
    command = get_command(app).get_command(None, words[0])
    return command.make_context(words[0], list(words[1:]))


def named(one: Typed):
    return f"{one.page}:{one.line}: {one.text}"


def test_there_are_commands_on_every_page_that_should_have_some():
    found = {one.page for one in COMMANDS}
    assert {"README.md", "docs/tutorial.md", "docs/cli.md", "docs/agent.md", "docs/hardware.md"} <= found
    assert len(OURS) > 100 and len(RUN) > 30


@pytest.mark.parametrize("one", OURS, ids=named)
def test_a_command_has_the_options_it_is_shown_with(one):
    parse(one.words[1:])


@pytest.mark.parametrize("one", RUN, ids=lambda one: smaller(one.text))
def test_a_command_runs(one, finished, tmp_path, monkeypatch, capsys):
    set_scene(tmp_path, one.page, one.text, finished)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FORCE_COLOR", "1")  # as some CI systems do: it is still a log
    began = time.monotonic()
    words = shlex.split(smaller(one.text))
    if "--resume sizes" in one.text:  # goes on with the sweep of the command before it
        run(monkeypatch, shlex.split(smaller(one.text).replace("--resume", "--out")))
    status = run(monkeypatch, words)
    out, err = capsys.readouterr()
    assert status == STATUS.get(one.text, 0), out + err
    assert "\x1b" not in out + err
    assert err.count("\n") <= 8 + (time.monotonic() - began) / 10, "progress floods a log"
    for line in one.shown:
        assert line in out


def run(monkeypatch, words):
    monkeypatch.setattr(sys, "argv", words)
    with pytest.raises(SystemExit) as stopped:
        main()
    return stopped.value.code or 0


def test_the_table_of_substitutions_has_nothing_that_is_not_used():
    texts = [one.text for one in COMMANDS]
    for pattern in PARSED:
        assert any(re.search(pattern, text) for text in texts), pattern
    for text in STATUS:
        assert text in texts
    made = texts
    for pattern, instead in SMALLER:
        assert any(re.search(pattern, text) for text in made), pattern
        made = [re.sub(pattern, instead, text) for text in made]


@pytest.mark.parametrize("text", sorted({one.text for one in COMMANDS if one not in OURS}))
def test_what_is_not_our_command_exists(text):
    words = shlex.split(text)
    if words[0] == "make":
        assert re.search(rf"^{words[1]}:", (ROOT / "Makefile").read_text(), re.M)
    elif words[:2] == ["pip", "install"]:
        extras = re.findall(r"\[([\w,]+)\]", text)
        setup = (ROOT / "setup.cfg").read_text()
        assert all(re.search(rf"^{extra} =$", setup, re.M) for part in extras for extra in part.split(","))
    elif words[:2] == ["python", "-m"]:
        assert importlib.util.find_spec(words[2])
    else:
        assert only_parsed(text) or words[:2] == ["swizzle-sim", "COMMAND"]


INLINE = re.compile(r"`(swizzle-sim [a-z][^`]*)`")


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_command_within_a_sentence_has_its_options(page):
    for text in INLINE.findall(page.read_text(encoding="utf-8").replace("\n", " ")):
        words = text.split()[1:]
        command = get_command(app).get_command(None, words[0])
        if words[0] == "lab" and len(words) > 1:
            command = command.get_command(None, words[1])
        known = {name for param in command.params for name in [*param.opts, *param.secondary_opts]} | {"--help"}
        for word in words[1:]:
            if word.startswith("-") and word != "-":
                assert word.split("=")[0] in known, text


def test_python_of_the_tutorial_runs(tmp_path, monkeypatch, capsys):
    page = (ROOT / "docs/tutorial.md").read_text()
    shown = {block.title or block.language: "\n".join(block.lines) for block in blocks(page)}
    (tmp_path / "mine.txt").write_text(shown["mine.txt"])
    monkeypatch.chdir(tmp_path)
    exec(compile(shown["python"].replace("2048", "512").replace("64", "16"), "tutorial", "exec"), {})
    domain, rate = capsys.readouterr().out.splitlines()
    assert domain == "num_pid_n % 16 == 0" and 0.45 < float(rate) < 0.81
