"""Are orders compared in one table, on GPUs side by side, and shown whole on a narrow terminal?"""

import io
import json

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

import swizzle_sim as sim
from swizzle_sim.cli import output
from swizzle_sim.search.candidates import Candidate
from swizzle_sim.search.history import Attempt, attempts_table, csv_of, parquet_of
from swizzle_sim.search.ranking import OBJECTIVES, BestSoFar, Ranking, default_objectives

WORDS = ("score", "gemm", "M=1024", "N=1024", "K=128", "BLOCK_M=128", "BLOCK_N=128")
LOCKSTEP = ("--replay", "lockstep")
SEVERAL = ("--swizzle", "row", "--swizzle", "contiguous+group_m(size=4)", "--gpu", "mi300x", "--gpu", "h200")


def test_orders_by_gpus_have_the_scores_of_single_commands(typed):
    found = typed(*WORDS, *LOCKSTEP, *SEVERAL, "--json").json
    assert [one["gpu"] for one in found["on"]] == ["mi300x", "h200"]
    assert [one["swizzle"] for one in found["orders"]] == ["launch order", "row", "contiguous+group_m(size=4)"]
    for order in found["orders"][1:]:
        for on in order["on"]:
            one = typed(*WORDS, *LOCKSTEP, "--swizzle", order["swizzle"], "--gpu", on["gpu"], "--json").json
            assert one["score"] == on["score"] and one["verdict"] == on["verdict"]
    shown = typed(*WORDS, *LOCKSTEP, *SEVERAL).out
    assert "contiguous+group_m(size=4)" in shown and "h200" in shown


def test_a_table_has_the_order_of_a_run(typed):
    """The launch order first, then the others as `optimize` ranks them, however they were typed."""
    words = ("score", "attention", "H=16", "S=1024", "CAUSAL=1", "--no-compile")
    names = ("column", "reverse", "longest_first(size=4)", "row")
    shown = typed(*words, *(word for name in names for word in ("--swizzle", name))).out
    scorer = sim.Scorer(sim.kernel("attention", H=16, S=1024, CAUSAL=1), sim.gpu("mi300x"))
    given = [("launch order", "", scorer.baseline)]
    for swizzle in map(sim.Swizzle.read, names):
        given.append((swizzle.name, swizzle.source, scorer.score(swizzle)))
    attempts = [
        Attempt(number=n, name=name, source=source, proposer="", verdict={}, score=score)
        for n, (name, source, score) in enumerate(given)
    ]
    decides = default_objectives("mi300x", "timed", scorer.work_class)
    ranked = [one.name for one in Ranking(decides, gpu="mi300x").order(attempts) if one.number]
    rows = [line.strip().split("  ")[0] for line in shown.splitlines()]
    assert [row for row in rows if row in {"launch order", *names}] == ["launch order", *ranked]
    assert ranked != list(names)


def test_an_order_that_is_no_bijection_has_a_dash_and_a_counterexample(typed):
    answer = typed(*WORDS, *LOCKSTEP, "--swizzle", "row", "--swizzle", "pid = pid // 2")
    assert answer.code == 1
    assert "pid 1 and pid 0 both compute tile 0" in answer.out
    row = next(line for line in answer.out.splitlines() if line.strip().startswith("pid = pid // 2  "))
    assert set(row.split("2", 1)[1].split()) == {"-"}


def test_without_a_swizzle_the_launch_order_is_scored(typed):
    alone = typed(*WORDS, *LOCKSTEP, "--json").json
    assert alone["swizzle"] == "launch order" and alone["score"] == alone["baseline"]
    shown = typed(*WORDS, *LOCKSTEP)
    assert shown.code == 0 and "next: swizzle-sim optimize gemm M=1024" in shown.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((*SEVERAL, "--seeds", "3"), "--seeds: of one swizzle on one GPU"),
        (("--seed", "1", "--seed", "2"), "--seed is given 2 times"),
    ],
)
def test_what_cannot_be_told_of_several_is_refused(typed, words, said):
    answer = typed(*WORDS, *words)
    assert answer.code == 2 and said in answer.err


def test_spans_of_a_timed_replay_have_every_workgroup_on_its_cu():
    gemm, gpu = sim.kernel("gemm", M=2048, N=2048, K=64, BLOCK_M=128, BLOCK_N=128), sim.gpu("mi300x")
    scorer = sim.Scorer(gemm, gpu)
    order = scorer.permutation(sim.Swizzle.read("contiguous"))
    traffic, spans = scorer.traffic_and_spans(order)
    begin, end, slot, requests, missed = spans.T
    assert (end > begin).all() and (begin >= 0).all()
    assert (slot % gpu.xcds == np.arange(order.size) % gpu.xcds).all()
    finish = np.zeros_like(traffic.cu_finish)
    np.maximum.at(finish, (slot % gpu.xcds, slot // gpu.xcds % gpu.cus_per_xcd), end)
    assert (finish == traffic.cu_finish).all()
    assert traffic.time_fs == scorer.traffic(order).time_fs
    of_code = scorer.fetches.sum(axis=0)  # fetched by no workgroup
    assert requests.sum() == traffic.l2_requests - of_code[1:3].sum()
    assert missed.sum() == traffic.l2_misses - of_code[3] and missed[9] > 0


@pytest.fixture
def terminal(monkeypatch, capsys):
    """Function that prints a table of one long name on a terminal of so many columns, and gives what stands there."""

    def shown(width):
        made = {"width": width, "force_terminal": True, "color_system": None}
        monkeypatch.setattr(output, "console", lambda wide=False: Console(soft_wrap=wide, **made))
        output.table("T", ("swizzle", "HBM\n[GB]", "below\nbound [pt]"), [("contiguous+group(8)", "1.0", "2.0")])
        return capsys.readouterr().out

    return shown


def test_a_narrow_terminal_loses_columns_and_no_name_is_folded(terminal):
    assert "left out" not in terminal(100)
    for width, away in ((40, "below bound [pt]"), (26, "HBM [GB], below bound [pt]")):
        table, _, said = terminal(width).partition(f"left out at {width} columns: ")
        assert "contiguous+group(8)" in table and ("1.0" in table) == (width == 40) and "2.0" not in table
        assert said == f"{away} (wider, or --json)\n"


def test_a_terminal_too_narrow_for_the_names_gets_a_list(terminal):
    assert "swizzle: contiguous+group(8)\nHBM [GB]: 1.0" in terminal(16)


def test_the_note_says_how_far_and_whose_sets_are_assumed(typed):
    said = "Rows lie a power of two apart (A 8 KiB, B 8 KiB, C 8 KiB)"
    size = ("M=4096", "N=4096", "K=4096", "--replay", "lockstep", "-v")
    assert said in typed("score", "gemm", *size).out and said not in typed("score", "gemm", *size, "--gpu", "h200").out
    assert "lie a power of two apart" not in typed("score", "gemm", "M=4608", "N=4608", "K=4608").out


# ---- Are stored runs listed, compared and exported whole?
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
