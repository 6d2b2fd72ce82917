"""Are stored runs listed, compared and exported whole?"""

import io
import json

import pandas as pd
import pytest

import swizzle_sim as sim
from swizzle_sim.search.candidates import Candidate
from swizzle_sim.search.history import attempts_table, csv_of, parquet_of
from swizzle_sim.search.ranking import OBJECTIVES, BestSoFar

ORDERS = ("row", "contiguous+row", "group_m(size=2)", "group_m(size=4)")


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Runs of families on two GPUs."""
    folder = tmp_path_factory.mktemp("runs")
    gemm = sim.kernel("gemm", M=1024, N=1024, K=128, BLOCK_M=128, BLOCK_N=128)
    candidates = [Candidate(spec, sim.family(spec), "families") for spec in ORDERS]
    candidates.append(Candidate("wrong", "pid = pid // 2", "families"))
    for name in ("mi300x", "mi355x"):
        sim.optimize(gemm, sim.gpu(name), folder / name, candidates=candidates, replay="lockstep")
    return folder


def test_runs_say_how_when_and_what_was_gained(typed, runs):
    found = typed("runs", runs, "--json").json["runs"]
    assert [(one["proposer"], one["replay"], one["attempts"]) for one in found] == [("families", "lockstep", 6)] * 2
    for one in found:
        assert one["gain_l2_hit_rate"] > 0.05 and one["written"].startswith("20")
    shown = typed("runs", runs).out
    assert "families" in shown and f"{100 * found[0]['gain_l2_hit_rate']:+.2f}" in shown


def test_runs_are_compared_order_by_order(typed, runs):
    found = typed("runs", runs / "mi300x", runs / "mi355x", "--json").json
    assert found["differ"] == ["gpu", "gpu_description"]
    rates = {one["swizzle"]: [score["l2_hit_rate"] for score in one["scores"]] for one in found["orders"]}
    assert set(rates) <= {"launch order", *ORDERS} and rates["launch order"] == [0.46875, 0.46875]
    shown = typed("runs", runs / "mi300x", runs / "mi355x").out
    assert "the runs differ in gpu:" in shown and "contiguous+row" in shown
    assert "their figures compare" in typed("runs", runs / "mi300x", runs / "mi300x").out


def test_a_table_has_every_attempt_and_comes_back_from_csv_and_parquet(typed, runs, tmp_path):
    table = attempts_table([runs / "mi300x", runs / "mi355x"])
    assert len(table) == 12 and table["l2_hit_rate"].notna().sum() == 8  # row is the launch order, and one is refused
    back = pd.read_csv(io.BytesIO(csv_of(table)))
    assert back["l2_hit_rate"].equals(table["l2_hit_rate"]) and list(back.columns) == list(table.columns)
    assert json.loads(back["per_xcd_l2_hit_rate"][0]) and json.loads(back["problem"][0])["M"] == 1024
    assert pd.read_parquet(io.BytesIO(parquet_of(table)))["source"].tolist() == table["source"].tolist()
    assert typed("export", runs / "mi300x", "-o", tmp_path / "a.csv", "--json").json["attempts"] == 6
    assert pd.read_csv(tmp_path / "a.csv")["name"].tolist() == ["identity", *ORDERS, "wrong"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("export", "RUN", "-o", "a.txt"), "a.txt: the name says the format: .csv, .parquet"),
        (("export", "RUN", "-o", "there.csv/a.csv"), "there.csv/a.csv: cannot be written"),
        (("export", "nowhere", "-o", "a.csv"), "no run here"),
    ],
)
def test_what_cannot_be_written_is_refused(typed, runs, tmp_path, words, said):
    (tmp_path / "there.csv").write_text("run,kernel")
    answer = typed(*(runs / "mi300x" if word == "RUN" else word for word in words))
    assert answer.code == 2 and said in answer.err


def test_a_watched_report_is_written_until_the_run_ends(typed, runs, tmp_path, monkeypatch):
    folder = tmp_path / "going"
    with sim.History(runs / "mi300x") as history:
        attempts = list(history)
        going = sim.History.create(folder, history.about)
    going.append(attempts[0])
    written, naps = [], iter([lambda: going.append(attempts[1]), lambda: None, lambda: going.set_state("finished")])

    def write(history, scorer=None, *, refresh_s=0):
        written.append((len(history), refresh_s > 0))
        return history.folder / "report.html"

    monkeypatch.setattr("swizzle_sim.report.write_report", write)
    monkeypatch.setattr("time.sleep", lambda seconds: next(naps)())
    monkeypatch.setattr(sim.History, "_written", lambda self: True)  # by a command that is alive
    assert typed("report", folder, "--watch").code == 0
    assert written == [(1, True), (1, True), (2, True), (2, False)]  # the last page no longer reloads itself


def test_the_best_so_far_is_said_in_the_objectives_own_unit(runs):
    with sim.History(runs / "mi300x") as history:
        scores = [one.score for one in history]
    rate, time = (BestSoFar(OBJECTIVES[name]) for name in ("l2_hit_rate", "time"))
    said = [(rate(score), time(score)) for score in [None, *scores]]
    assert said[0] == ("", "") and said[1][0] == "best L2 hit rate 46.88 %"
    assert said[-1][0] == f"best L2 hit rate {100 * max(one.l2_hit_rate for one in scores if one):.2f} %"
    assert said[-1][1] == f"best predicted time {min(one.time_us for one in scores if one):.4g} us"
