"""Does ``optimize`` say which finalists it cannot tell apart, and store it?"""

import json

import pytest
from typer.testing import CliRunner

from swizzle_sim.cli.app import app
from swizzle_sim.report.rank_stability import stability_lines

WORDS = "optimize gemm M=512 N=512 K=128 BLOCK_M=64 BLOCK_N=64 BLOCK_K=64 --replay lockstep".split()  # noqa: SIM905


def pair(worse, low, high):
    return {"better": "a", "worse": worse, "low": low, "high": high, "apart": low > 0}


def test_signs_decide_who_is_ahead():
    ahead = pair("e", 0.03, 0.07)
    pairs = [pair("b", -0.002, 0.02), pair("c", 0.0, 0.0), pair("d", 0.0, 0.02), ahead]
    found = {"draws": 8, "constants": ["l2.ways"], "of": "l2_hit_rate", "pairs": pairs}
    close, far, drawn = stability_lines(found)
    assert close == ("a ties with: b (-0.20 to +2.00 points), c (equal), d (+0.00 to +2.00 points)")
    assert far == "a always beats: e (+3.00 to +7.00 points)"
    assert "8 other guesses of 1 uncertain constants" in drawn
    assert len(stability_lines({**found, "pairs": [ahead]})) == 2


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """One search, told apart, as JSON, and its folder."""
    folder = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder / "kept"))
        patch.setattr("swizzle_sim.report.write_report", lambda *given: None)  # slow, and another test's
        typed = CliRunner().invoke(app, [*WORDS, "--out", str(folder / "run"), "--json"])
    assert typed.exit_code == 0, typed.output
    return json.loads(typed.stdout), folder / "run"


def test_the_finalists_are_held_against_each_other(run):
    document, folder = run
    told = document["uncertainty"]
    assert told == json.loads((folder / "uncertainty.json").read_text())
    assert told["draws"] == 8 and told["of"] == "l2_hit_rate" and "l2.ways" in told["constants"]
    best = document["best"][0]
    rates = {one["name"]: one["score"]["l2_hit_rate"] for one in document["best"]}
    rates["the order as launched"] = document["baseline"]["score"]["l2_hit_rate"]
    for pair in told["pairs"]:
        assert pair["low"] <= pair["value"] <= pair["high"] and pair["apart"] == (pair["low"] > 0)
        assert pair["value"] == pytest.approx(rates[pair["better"]] - rates[pair["worse"]])
    assert best["name"] in {pair["better"] for pair in told["pairs"]} | {pair["worse"] for pair in told["pairs"]}


def test_it_can_be_left_out(run, tmp_path, monkeypatch):
    monkeypatch.setattr("swizzle_sim.report.write_report", lambda *given: None)
    words = [*WORDS, "--out", str(tmp_path / "run"), "--no-uncertainty", "--json"]
    document = json.loads(CliRunner().invoke(app, words).stdout)
    assert document["uncertainty"] is None and not (tmp_path / "run" / "uncertainty.json").exists()
    assert {one["name"] for one in document["best"]} == {one["name"] for one in run[0]["best"]}  # ties may swap


def test_what_a_search_found_is_held_against_the_rest_too(tmp_path, monkeypatch):
    monkeypatch.setattr("swizzle_sim.report.write_report", lambda *given: None)
    words = [*WORDS, "--proposer", "search", "--template", "contiguous+group_m", "--evaluations", "5"]
    document = json.loads(CliRunner().invoke(app, [*words, "--out", str(tmp_path / "run"), "--json"]).stdout)
    told = document["uncertainty"]
    assert told["draws"] == 8 and told == json.loads((tmp_path / "run" / "uncertainty.json").read_text())
    assert {pair["better"] for pair in told["pairs"]} <= {document["best"][0]["name"], "the order as launched"}
    words += ["--objective", "energy", "--out", str(tmp_path / "other"), "--json"]
    assert json.loads(CliRunner().invoke(app, words).stdout)["uncertainty"] is None
