"""Do bundle, import, agreement and doctor do what they say, as typed?"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.fidelity import contributed
from tests.hardware.conftest import DATA, SIZES, STAND_IN

COMMAND = shutil.which("swizzle-sim", path=str(Path(sys.executable).parent)) or "swizzle-sim"
WORDS = [f"{name}={value}" for name, value in (SIZES | {"M": 32, "N": 48}).items()]


@pytest.fixture
def typed(tmp_path):
    def run(*words, env=None):
        done = subprocess.run(
            [COMMAND, *map(str, words)],
            capture_output=True, text=True, cwd=tmp_path, timeout=120, env={**os.environ, **(env or {})},
        )  # fmt: skip
        assert "Traceback" not in done.stderr, done.stderr
        return done

    return run


def test_from_a_run_to_agreement(typed, tmp_path, confirm):
    assert typed("optimize", "gemm", *WORDS, "--out", "runs/g").returncode == 0
    made = typed("bundle", "runs/g", "--top", "1", "-o", "gb", "--no-check")
    assert made.returncode == 0, made.stderr
    assert made.stdout.splitlines()[-1] == "back here: swizzle-sim import gb/result.json"
    confirm(tmp_path / "gb", "--no-time", rocprofv3={"hits": {"candidate_1": 900}})
    home = typed("import", "gb/result.json")
    assert home.returncode == 0, home.stderr
    assert "90.00" in home.stdout and "nothing here was measured" in home.stdout
    stored = list((tmp_path / "runs/g/measurements").glob("*.json"))
    assert len(stored) == 1 and json.loads(stored[0].read_text())["kind"] == "replayed"
    answer = typed("agreement", "runs/g", "--json")
    assert answer.returncode == 0, answer.stderr
    document = json.loads(answer.stdout)
    (one,) = document["agreements"]
    assert one["kind"] == "replayed" and one["candidates"][1]["predicted"]["kind"] == "simulated"
    assert {c["figure"] for c in one["comparisons"]} == {"L2 hit rate", "L2 misses"}
    assert [Path(path).suffix for path in document["written"]] == [".png"], "what was replayed makes no rows"
    env = {"PYTHONPATH": str(STAND_IN), "STAND_IN_GPU": '{"name": ""}', "TRITON_INTERPRET": "1"}
    nowhere = typed("confirm", "runs/g", "-o", "again", env=env)
    assert nowhere.returncode == 2 and "sees no GPU" in nowhere.stderr
    other = json.loads((tmp_path / "gb/result.json").read_text()) | {"problem": {"M": 1}}
    (tmp_path / "other.json").write_text(json.dumps(other | {"bundle": "0" * 64}))
    refused = typed("import", "other.json", "--run", "runs/g", "--json")
    assert refused.returncode == 2 and json.loads(refused.stdout)["error"]["code"] == "other-size"


def test_agreement_of_what_an_h200_measured(typed, tmp_path):
    shutil.copytree(DATA / "h200" / "attention", tmp_path / "attention")
    answer = typed("agreement", "attention")
    assert answer.returncode == 0, answer.stderr
    assert "measured on NVIDIA H200" in answer.stdout and "memory reads: rank correlation" in answer.stdout
    (rows,) = (tmp_path / "attention").glob("agreement-*.csv")
    assert len(list(contributed.read(rows))) == 16


def test_a_bundle_of_a_kernel(typed, tmp_path):
    words = ["bundle", "transpose", "M=256", "N=128", "--swizzle", "contiguous", "--no-check", "--json"]
    made = typed(*words, "-o", "t")
    assert made.returncode == 0, made.stderr
    assert json.loads(made.stdout)["candidates"] == ["as launched", "contiguous"]
    assert (tmp_path / "t" / "candidate_1.hip").exists()
    assert "nothing to swizzle" in typed(*words[:-1], "--gpu", "mi300x-cpx").stderr
    (tmp_path / "empty").mkdir()
    assert "no run here" in typed("bundle", "empty").stderr


@pytest.mark.parametrize(
    "name", ["new_counter_collection.csv", "old_kernel_trace.csv", "agent_info.csv", "metrix.json"]
)
def test_looking_into_a_profilers_file(typed, name):
    answer = typed("import", DATA / name)
    assert answer.returncode == 0, answer.stderr
    assert "gemm" in answer.stdout or "8 XCDs, 304 CUs" in answer.stdout


def test_doctor(typed):
    answer = typed("doctor", "--json", env={"PATH": f"{STAND_IN / 'bin'}:{os.environ['PATH']}"})
    checks = {one["name"]: one for one in json.loads(answer.stdout)["checks"]}
    assert {"GPU", "C++ compiler", "cache folder"} <= set(checks)
    assert all(one["state"] in ("ok", "off", "missing") and one["message"] for one in checks.values())
