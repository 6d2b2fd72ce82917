"""Do bundle, import and doctor do what they say, as typed?"""

import json
import os
import shutil

import pytest

from tests.capture.same_trace import needs_triton
from tests.hardware.conftest import DATA, SIZES, STAND_IN
from tests.in_process import runner

WORDS = [f"{name}={value}" for name, value in (SIZES | {"M": 32, "N": 48}).items()]


@pytest.fixture
def typed(monkeypatch, capfd, tmp_path):  # as files: `confirm` hands its stderr to a process
    return runner(monkeypatch, capfd, tmp_path)


@needs_triton
def test_from_a_run_to_agreement(typed, tmp_path, confirm):
    assert typed("optimize", "gemm", *WORDS, "--out", "runs/g").code == 0
    made = typed("bundle", "runs/g", "--top", "1", "-o", "gb", "--no-check")
    assert made.code == 0, made.err
    assert made.out.splitlines()[-1] == "back here: swizzle-sim import gb/result.json"
    confirm(tmp_path / "gb", "--no-time", rocprofv3={"hits": {"candidate_1": 900}})
    home = typed("import", "gb/result.json")
    assert home.code == 0, home.err
    assert "90.00" in home.out and "nothing here was measured" in home.out
    stored = list((tmp_path / "runs/g/measurements").glob("*.json"))
    assert len(stored) == 1 and json.loads(stored[0].read_text())["kind"] == "replayed"
    answer = typed("import", "runs/g", "--json")
    assert answer.code == 0, answer.err
    document = json.loads(answer.out)
    (one,) = document["agreements"]
    assert one["kind"] == "replayed" and one["candidates"][1]["predicted"]["kind"] == "simulated"
    assert {c["figure"] for c in one["comparisons"]} == {"L2 hit rate", "L2 misses"}
    other = json.loads((tmp_path / "gb/result.json").read_text()) | {"problem": {"M": 1}}
    (tmp_path / "other.json").write_text(json.dumps(other | {"bundle": "0" * 64}))
    refused = typed("import", "other.json", "--run", "runs/g", "--json")
    assert refused.code == 2 and json.loads(refused.out)["error"]["code"] == "other-size"


def test_agreement_of_what_an_h200_measured(typed, tmp_path):
    shutil.copytree(DATA / "h200" / "transpose", tmp_path / "transpose")
    answer = typed("import", "transpose")
    assert answer.code == 0, answer.err
    assert "measured on NVIDIA H200" in answer.out and "pairs beyond the spread the right way round" in answer.out


def test_a_bundle_of_a_kernel(typed, tmp_path):
    words = ["bundle", "transpose", "M=256", "N=128", "--swizzle", "contiguous", "--no-check", "--json"]
    made = typed(*words, "-o", "t")
    assert made.code == 0, made.err
    assert json.loads(made.out)["candidates"] == ["launch order", "contiguous"]
    assert "nothing to swizzle" in typed(*words[:-1], "--gpu", "mi300x-cpx").err
    (tmp_path / "empty").mkdir()
    assert "no run here" in typed("bundle", "empty").err


def test_counters_of_a_profilers_file(typed, tmp_path):
    answer = typed("lab", "counters", DATA / "new_counter_collection.csv")
    assert answer.code == 0, answer.err
    assert (
        "33.34" in answer.out and "l2_hits = TCC_HIT_sum [requests]" in answer.out and "taken for gfx942" in answer.out
    )
    document = json.loads(typed("lab", "counters", DATA / "old_counter_collection.csv", "--json").out)
    assert document["arch"] == "gfx942" and document["launches"][0]["read_bytes"] is None
    assert "no read_bytes without TCC_EA0_RDREQ_32B_sum" in document["doubts"]
    table = typed("lab", "counters", DATA / "h200" / "gemm" / "candidate_1_table.csv", "--json")
    measured = json.loads((DATA / "h200" / "gemm" / "result.json").read_text())["candidates"]["candidate_1"]["counters"]
    found = json.loads(table.out)
    assert found["arch"] == "sm_" and not found["doubts"]
    reads = sorted(one["read_bytes"] for one in found["launches"][1:])  # the first warmed up
    assert reads[1] == measured["dram__bytes_read.sum"]["value"]
    (tmp_path / "fetch.csv").write_text(
        "Dispatch_Id,Kernel_Name,Counter_Name,Counter_Value\n1,gemm,FETCH_SIZE,1024\n1,gemm,TCC_HIT,3\n1,gemm,TCC_MISS,1\n"
        "1,gemm,TCC_HIT,3\n1,gemm,TCC_MISS,1\n"
    )
    asked = json.loads(typed("lab", "counters", tmp_path / "fetch.csv", "--gpu", "mi355x", "--json").out)
    assert asked["launches"][0]["read_bytes"] == 2**20 and asked["launches"][0]["l2_hit_rate"] == 0.75
    assert any("FETCH_SIZE of gfx950" in one for one in asked["doubts"])
    assert "swizzle-sim lab counters" in typed("import", DATA / "old_counter_collection.csv").err


def test_doctor(typed, monkeypatch):
    monkeypatch.setenv("PATH", f"{STAND_IN / 'bin'}:{os.environ['PATH']}")
    answer = typed("doctor", "--json")
    checks = {one["name"]: one for one in json.loads(answer.out)["checks"]}
    assert {"GPU", "C++ compiler", "cache folder"} <= set(checks)
    assert all(one["state"] in ("ok", "off", "missing") and one["message"] for one in checks.values())
