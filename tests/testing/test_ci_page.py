"""Is what docs/howto/ci.md shows what happens: the folder, pytest, the hook, the action and its workflow?"""

import os
import re
import runpy
import shlex
import subprocess
import sys
from importlib import resources

import pytest
import yaml
from typer.testing import CliRunner

from swizzle_sim.cli.app import app
from swizzle_sim.testing import BijectionError, HitRateError, assert_bijective, assert_hit_rate
from swizzle_sim.triton_source.source_file import SOURCES
from tests.docs.typed import ROOT, blocks

PAGE = list(blocks((ROOT / "docs" / "howto" / "ci.md").read_text(encoding="utf-8")))
NAMED = {block.title: "".join(f"{line}\n" for line in block.lines) for block in PAGE if block.title}
OTHER = list(blocks((ROOT / "docs" / "ci.md").read_text(encoding="utf-8")))
REMAP = next("\n".join(block.lines) for block in OTHER if block.title == "remap.py")
SPREAD = "import triton\n\n\n@triton.jit\ndef spread(pid, SPREAD):\n    return pid % 8 * SPREAD + pid // 8\n"


@pytest.fixture
def repository(tmp_path, monkeypatch):
    (tmp_path / "src").mkdir()
    naive, exact = REMAP.split("\n\n\n")
    (tmp_path / "src" / "remap.py").write_text(f"# swizzle-check\n{exact}\n\n# swizzle-check\n{naive}\n")
    (tmp_path / "src" / "spread.py").write_text(SPREAD)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    return tmp_path


def test_the_folder_is_printed_as_shown(repository):
    done = CliRunner().invoke(app, ["check", "src/"])
    printed = done.stdout.splitlines()
    shown = NAMED["printed"].splitlines()
    for line in shown:
        beginning = re.escape(line).replace(re.escape("..."), ".*")
        assert any(re.match(beginning, one) for one in printed), line
    assert done.exit_code == 1
    assert CliRunner().invoke(app, ["check", "src/", "--exclude", "remap.py"]).exit_code == 2
    assert CliRunner().invoke(app, ["check", "src/", "--exclude", "remap.py", "--allow-skips"]).exit_code == 0


def test_pytest_runs_as_shown(repository):
    for name in ("pytest.ini", "test_kernels.py"):
        (repository / name).write_text(NAMED[name])
    # what else is installed here is not on trial
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    words = [sys.executable, "-m", "pytest", "-p", "swizzle_sim.testing.plugin", "-p", "no:cacheprovider", "-q"]
    done = subprocess.run(words, capture_output=True, text=True, env=environment, check=False)
    assert "1 failed, 3 passed, 1 skipped" in done.stdout, done.stdout
    assert "FAILED src/remap.py::naive" in done.stdout


def test_the_floor_fails_as_shown():
    with pytest.raises(HitRateError) as failed:
        assert_hit_rate("gemm", "contiguous", at_least=0.55, M=2048, N=2048, K=1024)
    assert f"{failed.value}\n" == NAMED["below the floor"]


def test_the_hook_is_that_of_the_repository():
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    (repo,) = yaml.safe_load(NAMED[".pre-commit-config.yaml"])["repos"]
    assert [one["id"] for one in repo["hooks"]] == [hook["id"]]
    taken = [f"kernels/a{suffix}" for suffix in (*SOURCES, ".swizzle")] + ["swizzles/a.txt"]
    assert all(re.search(hook["files"], name) for name in taken)
    assert not any(re.search(hook["files"], name) for name in ("a.txt", "a.pyc", "a.md", "acc"))


def holds(schema, path):
    words = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, str(path)]
    return subprocess.run(words, capture_output=True, text=True, check=False)


def test_action_and_workflow_are_of_githubs_schema(tmp_path):
    assert resources.files("check_jsonschema")  # the schemas that it carries: nothing is fetched
    done = holds("vendor.github-actions", ROOT / "action.yml")
    assert done.returncode == 0, done.stdout
    (tmp_path / "workflow.yml").write_text(NAMED["workflow"])
    for flow in (tmp_path / "workflow.yml", *sorted((ROOT / ".github" / "workflows").glob("*.yml"))):
        done = holds("vendor.github-workflows", flow)
        assert done.returncode == 0, done.stdout
    (tmp_path / "broken.yml").write_text(NAMED["workflow"].replace("runs-on", "run-on"))
    assert holds("vendor.github-workflows", tmp_path / "broken.yml").returncode == 1
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    (job,) = yaml.safe_load(NAMED["workflow"])["jobs"].values()
    used = next(step for step in job["steps"] if "swizzle-sim" in step["uses"])
    assert set(used["with"]) <= set(action["inputs"])
    upload = next(step for step in job["steps"] if "upload-sarif" in step["uses"])
    assert upload["with"]["sarif_file"] == action["inputs"]["sarif"]["default"]


@pytest.mark.parametrize(
    ("inputs", "status"),
    [
        ({}, 1),
        ({"EXCLUDE": "remap.py"}, 2),
        ({"EXCLUDE": "remap.py", "ALLOW_SKIPS": "true"}, 0),
        ({"PATHS": "nowhere $(touch owned)\n`touch owned`", "ALLOW_SKIPS": "true"}, 2),
        ({"PATHS": "--help"}, 2),
        ({"PATHS": "src\n\nsrc/remap.py\n"}, 1),
    ],
    ids=str,
)
def test_the_script_of_the_action(repository, inputs, status):
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    step = action["runs"]["steps"][-1]
    given = {name.lower(): value for name, value in inputs.items()}
    names = {name: re.fullmatch(r"\$\{\{ inputs\.([a-z-]+) \}\}", value)[1] for name, value in step["env"].items()}
    assert "${{" not in step["run"]
    values = {k: given.get(k.lower(), action["inputs"][name]["default"]) for k, name in names.items()}
    (repository / "bin").mkdir()
    command = repository / "bin" / "swizzle-sim"
    command.write_text(
        f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -c "from swizzle_sim.cli import main; main()" "$@"\n'
    )
    command.chmod(0o755)
    environment = {**os.environ, **values, "PATH": f"{command.parent}:{os.environ['PATH']}", "GITHUB_ACTIONS": "true"}
    shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]  # as GitHub runs it
    done = subprocess.run(shell, cwd=repository, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stdout + done.stderr
    assert not (repository / "owned").exists()
    if status == 1:
        assert (repository / "swizzles.sarif").exists()
        assert (repository / "swizzles.xml").exists()
        assert "::error file=src/remap.py,line=" in done.stdout


# ---- Is what docs/ci.md shows what happens?
DOCS_NAMED = {block.title: "".join(f"{line}\n" for line in block.lines) for block in OTHER if block.title}


@pytest.fixture
def scene(tmp_path, monkeypatch):
    for name in ("remap.py", "test_remap.py", "gemm.py"):
        (tmp_path / name).write_text(DOCS_NAMED[name])
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def test_the_test_shown_passes_and_fails_as_shown(scene):
    shown = runpy.run_path("test_remap.py")
    shown["test_exact"]()
    with pytest.raises(BijectionError) as failed:
        shown["test_naive"]()
    assert f"{failed.value}\n" == DOCS_NAMED["naive"]
    del sys.modules["remap"]


def test_the_other_python_block_runs(scene):
    remap = runpy.run_path("remap.py")
    (piece,) = ["\n".join(block.lines) for block in OTHER if block.language == "python" and not block.title]
    exec(piece, {**remap, "assert_bijective": assert_bijective})
