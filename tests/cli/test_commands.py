"""Do the commands do what they say, for people and for programs?"""

import ctypes
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import swizzle_sim as sim
from swizzle_sim.__main__ import M_ARENA_MAX, M_MMAP_THRESHOLD, _give_back_what_is_freed
from tests.cli.conftest import COMMAND
from xcd_model.errors import LanguageError, UnknownName

SMALL = ("M=1024", "N=1024", "K=128")


def test_what_there_is(typed, monkeypatch):
    names = "swizzle_sim.workload.kernels.kernel_names"
    monkeypatch.setattr(names, lambda: ["attention_decode", "gemm"])  # all take a minute
    gpus = typed("gpus", "--json").json["gpus"]
    xcds = {"b200": 1, "gb10": 1, "h100": 1, "h200": 1, "mi300a": 6, "mi300x": 8, "mi308x": 4}
    assert {g["name"]: g["xcds"] for g in gpus} == xcds | dict.fromkeys(("mi325x", "mi350x", "mi355x", "mi450"), 8)
    assert gpus[5]["facts"]["l2.size_bytes"]["source"]
    rows = [line.split() for line in typed("gpus").out.splitlines()]
    assert {row[0]: row[-1] for row in rows if row[:1] == ["mi325x"] or row[:1] == ["mi355x"]} == {
        "mi325x": "6.0",
        "mi355x": "8.0",
    }
    assert "gemm" in [kernel["name"] for kernel in typed("kernels", "--json").json["kernels"]]
    listed = typed("kernels")
    assert "gemm" in listed.out and "tracing" not in listed.err  # known by now, all that the GPU can run
    shown = typed("show", "gemm", *SMALL, "--json").json
    assert shown["tiles"] == [4, 4] and 0 < shown["bound_l2_hit_rate"] < 1
    assert "row panel" in typed("show", "gemm", *SMALL).out


def test_score_fits_a_screen_and_names_the_fitted_constants_where_asked(typed):
    brief = typed("score", "gemm", *SMALL, "--swizzle", "group_m(size=2)").out
    assert "group_m(size=2)" in brief and len(brief.splitlines()) <= 24 and "fitted" not in brief
    power = "energy.fabric_pj_per_byte, energy.mall_pj_per_byte, energy.flop_pj.fp16 (rows: docs/gpus.md)"
    for more, named in (
        ((), "5 constants fitted to measured rows: l2.index_rows, limits.reads_in_flight_per_cu"),
        (("--replay", "lockstep"), "4 constants fitted to measured rows: l2.index_rows"),
    ):
        printed = typed("score", "gemm", *SMALL, "--swizzle", "group_m(size=2)", *more, "-v").out
        assert f"{named}, {power}" in " ".join(printed.split())
    printed = typed("score", "gemm", *SMALL, "--gpu", "mi355x", "--replay", "lockstep", "-v").out
    assert "2 constants fitted to measured rows: l2.index_rows, mall.index_rows (rows: docs/gpus.md)" in printed


@pytest.mark.parametrize("replay", ["lockstep", "timed"])
def test_score_counts_by_level_and_tensor_and_draws(typed, tmp_path, replay):
    words = ("score", "gemm", *SMALL, "--swizzle", "contiguous", "--replay", replay)
    document = typed(*words, "--json", "--plots", "plots").json
    assert document["score"]["l2_hit_rate"] <= document["assigned_bound_l2_hit_rate"] <= 1
    traffic = document["traffic"]
    assert set(traffic["by_tensor"]) == {"A", "B", "C"}
    for level, column in (("l1", "requests"), ("l2", "misses"), ("mall", "hits"), ("hbm", "read_bytes")):
        total = traffic["all"][level][column]
        assert sum(part[level][column] for part in traffic["by_tensor"].values()) == total
        assert sum(part[level][column] for part in traffic["per_xcd"]) == total
    assert traffic["all"]["l2"]["misses"] == document["score"]["l2_misses"]
    for name in ("over_time.png", "per_xcd.png"):
        assert (tmp_path / "plots" / name).read_bytes().startswith(b"\x89PNG")
    assert "by tensor" in typed(*words, "--verbose").out


@pytest.mark.parametrize(("how", "style"), [("spawned", []), ("typed", ["--json"])])
def test_what_is_no_bijection_exits_1_and_has_no_score(request, how, style):
    answer = request.getfixturevalue(how)("score", "gemm", *SMALL, "--swizzle", "-", *style, stdin="pid = pid % 4\n")
    assert answer.code == 1 and "4 of 16 tiles are computed" in answer.out
    assert answer.json["score"] is None if style else "hit rate" not in answer.out


def test_optimize_report_and_runs(typed, tmp_path, request):
    tiles = ("M=512", "N=512", "K=128", "BLOCK_M=64", "BLOCK_N=64")  # an order can raise its hit rate
    document = typed("optimize", "gemm", *tiles, "--report", "--json").json
    folder = tmp_path / document["run"]
    for name in ("history.sqlite", "best.txt", "best_triton.py", "best.hip", "report.html", "map.png", "progress.png"):
        assert (folder / name).stat().st_size > 0
    assert document["tried"] == document["scored"] + document["refused"] + document["duplicates"]
    rates = [entry["score"]["l2_hit_rate"] for entry in document["best"]]
    assert rates == sorted(rates, reverse=True) and len(rates) == 5 and document["baseline"]["name"] == "identity"
    again = typed("optimize", "gemm", *tiles, "--no-report")
    written = {path.name for path in (tmp_path / "runs/gemm-mi300x-002").iterdir()}
    assert written >= {"best.txt", "best_triton.py", "best.hip"} and "report.html" not in again.out + " ".join(written)
    assert again.out.splitlines()[-3] == "  swizzle-sim report runs/gemm-mi300x-002 --open"
    assert again.out.splitlines()[0] == document["advice"]["what"] and len(again.out.splitlines()) <= 24
    assert [r["state"] for r in typed("runs", "--json").json["runs"]] == ["finished", "finished"]
    request.getfixturevalue("sketched")  # `report` has been drawn once, by `optimize`
    assert typed("report", document["run"]).code == 0
    best = f"{document['run']}/best.txt"
    known = {one["source"]: one["score"] for one in (*document["best"], document["baseline"])}
    found = known[(tmp_path / best).read_text()]
    assert typed("score", "gemm", *tiles, "--swizzle", best, "--json").json["score"] == found
    assert found["l2_hit_rate"] == max(score["l2_hit_rate"] for score in known.values())
    assert typed("optimize", "gemm", *tiles, "--out", document["run"]).code == 2


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux has a device that is full")
@pytest.mark.parametrize("words", [("gpus",), ("gpus", "--json"), ("score", "gem", "--json"), ("--help",)])
def test_a_full_disk_is_a_line_and_no_traceback(words):
    with open("/dev/full", "w") as full:
        done = subprocess.run([COMMAND, *words], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    assert done.returncode == 1 and done.stderr == "swizzle-sim: cannot be written: No space left on device\n"


def test_the_module_is_the_command_and_a_closed_stdout_is_no_error():
    for end, code in (">&-", 0), ("| true", 0):
        words = ["sh", "-c", f"{shlex.quote(sys.executable)} -m swizzle_sim gpus {end}"]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stderr) == (code, "")


@pytest.mark.parametrize("setting", [{"PYTHONIOENCODING": "ascii"}, {"COLUMNS": "0"}])
def test_sentences_are_printed_whatever_the_terminal_takes(setting):
    words = ["score", "gemm", "M=256", "N=256", "K=64", "--replay", "lockstep", "--no-compile"]
    done = subprocess.run([COMMAND, *words], capture_output=True, text=True, timeout=60, env={**os.environ, **setting})
    assert done.returncode == 0 and "simulated, lockstep replay" in done.stdout


# ---- Is an order named in one way everywhere: a family, a text or a file?
BACKWARDS = "pid = num_pids - 1 - pid"


@pytest.fixture
def named(tmp_path):
    """The same order as a family, as a text and as a file."""
    file = tmp_path / "mine.txt"
    file.write_text(BACKWARDS)
    return ["reverse", BACKWARDS, str(file), file]


def test_one_order_by_any_of_its_names_is_one_score(named):
    gemm = sim.kernel("gemm", M=1024, N=1024, K=128)
    scores = [sim.score(gemm, one, "mi300x", replay="lockstep") for one in named]
    assert scores == [sim.score(gemm, sim.Swizzle.read(named[0]), sim.gpu("mi300x"), replay="lockstep")] * len(named)


def test_a_family_or_a_text_is_parsed_and_no_file_is_opened(named):
    by_family, by_text = sim.Swizzle.parse("reverse"), sim.Swizzle.parse(BACKWARDS)
    grid = sim.Grid.parse("4x4")
    assert by_family.permutation(grid, 8).tolist() == by_text.permutation(grid, 8).tolist()
    assert by_family.name == "reverse" and by_family.source == sim.family("reverse")
    with pytest.raises(LanguageError):
        sim.Swizzle.parse(named[2])  # a model's text may be a path


@pytest.mark.parametrize("text", ["reverse(size=3)", "group_m(size=0)", "group_mm", "pid", ""])
def test_what_is_no_order_is_an_error_of_the_language_from_a_proposer(text):
    with pytest.raises(LanguageError):
        sim.Swizzle.parse(text)


def test_a_person_is_offered_the_nearest_family_and_told_of_a_missing_file():
    with pytest.raises(UnknownName, match="did you mean group_m"):
        sim.Swizzle.read("grup_m")
    for where in ("nowhere.txt", Path("row")):  # a path is a file, whatever it is called
        with pytest.raises(LanguageError, match="no such file"):
            sim.Swizzle.read(where)
    name = sim.Swizzle.read("a = pid // 2; pid = pid + 0 * a + 0 * (a + a + a)").name
    assert name == "a = pid // 2; pid = pid + 0 * a + 0 * (…"


def test_check_takes_a_text_beside_sizes_and_families(typed):
    answer = typed("check", BACKWARDS, "row", "pid = pid * K // K", "K=64", "--grid", "4x4")
    assert answer.code == 0 and answer.out.count("a bijection") == 3
    assert typed("check", "pid = pid // 2").err.startswith("swizzle-sim: say where to check")
    Path("rank.py").write_text("def rank(pid, n):\n    return n - 1 - pid\n")
    assert typed("check", "rank.py::rank", "n=num_pids").out.startswith("rank.py:1: ok")


def test_a_file_called_launch_order_is_not_taken_for_it(typed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ("score", "gemm", "M=4096", "N=8192", "K=128", "--replay", "lockstep", "--json", "--swizzle")
    Path("launch order").write_text("pid = pid % 8 * (num_pids // 8) + pid // 8")
    Path("chunks").write_text("pid = pid % 8 * (num_pids // 8) + pid // 8")
    scores = [json.loads(typed(*words, name).out) for name in ("launch order", "chunks", "identity")]
    assert scores[0]["score"] == scores[1]["score"] != scores[2]["score"] == scores[2]["baseline"]
    assert "launch order (file)" in typed(*words[:-2], "--swizzle", "launch order").out


# ---- Does a command let its threads share what they free, and leave it where a user has asked for something else?
SHARED = {M_ARENA_MAX: 1, M_MMAP_THRESHOLD: 16 << 20}


@pytest.mark.parametrize(
    ("platform", "chosen", "takes", "wanted"),
    [
        ("linux", None, True, SHARED),
        ("linux", "MALLOC_ARENA_MAX", True, {}),  # a choice of the user's is left
        ("linux", "MALLOC_MMAP_THRESHOLD_", True, {}),
        ("linux", None, False, {}),  # another libc
        ("darwin", None, True, {}),
    ],
)
def test_threads_share_one_arena_and_what_is_large_is_mapped(monkeypatch, platform, chosen, takes, wanted):
    asked = {}
    libc = SimpleNamespace(**{"mallopt": asked.__setitem__} if takes else {})
    monkeypatch.setattr(ctypes, "CDLL", lambda name: libc)
    monkeypatch.setattr(sys, "platform", platform)
    for name in [name for name in os.environ if name.startswith("MALLOC_")]:
        monkeypatch.delenv(name)
    if chosen:
        monkeypatch.setenv(chosen, "4")
    _give_back_what_is_freed()
    assert asked == wanted
