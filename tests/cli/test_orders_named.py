"""Is an order named in one way everywhere: a family, a text or a file?"""

import json
from pathlib import Path

import pytest

import swizzle_sim as sim
from xcd_model.errors import LanguageError, UnknownName

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
    assert sim.Swizzle.read("a = pid // 2; pid = pid + 0 * a + 0 * (a + a + a)").name == (
        "a = pid // 2; pid = pid + 0 * a + 0 * (…"
    )


def test_check_takes_a_text_beside_sizes_and_families(typed):
    answer = typed("check", BACKWARDS, "row", "pid = pid * K // K", "K=64", "--grid", "4x4")
    assert answer.code == 0 and answer.out.count("a bijection") == 3
    assert typed("check", "pid = pid // 2").err.startswith("swizzle-sim: say where to check")


def test_a_file_called_launch_order_is_not_taken_for_it(typed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ("score", "gemm", "M=4096", "N=8192", "K=128", "--replay", "lockstep", "--json", "--swizzle")
    Path("launch order").write_text("pid = pid % 8 * (num_pids // 8) + pid // 8")
    Path("chunks").write_text("pid = pid % 8 * (num_pids // 8) + pid // 8")
    scores = [json.loads(typed(*words, name).out) for name in ("launch order", "chunks", "identity")]
    assert scores[0]["score"] == scores[1]["score"] != scores[2]["score"] == scores[2]["baseline"]
    assert "launch order (file)" in typed(*words[:-2], "--swizzle", "launch order").out
