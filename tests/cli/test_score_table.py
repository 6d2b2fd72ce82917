"""Are orders compared in one table, on GPUs side by side, and shown whole on a narrow terminal?"""

import json

import numpy as np
import pytest
from rich.console import Console

import swizzle_sim as sim
from swizzle_sim.cli import output
from swizzle_sim.report.display.perfetto import perfetto_trace
from swizzle_sim.search.history import Attempt
from swizzle_sim.search.ranking import Ranking, default_objectives

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
        (("--perfetto", "t.json", *LOCKSTEP), "--perfetto shows times"),
        (("--seed", "1", "--seed", "2"), "--seed is given 2 times"),
    ],
)
def test_what_cannot_be_told_of_several_is_refused(typed, words, said):
    answer = typed(*WORDS, *words)
    assert answer.code == 2 and said in answer.err


def test_a_trace_for_perfetto_has_every_workgroup_on_its_cu(tmp_path):
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
    events = json.loads(perfetto_trace(spans, order, traffic, gpu, "a gemm"))["traceEvents"]
    slices = {one["name"]: one for one in events if one["ph"] == "X"}
    assert len(slices) == order.size and slices["workgroup 9"]["args"]["tile"] == int(order[9])
    assert slices["workgroup 9"]["pid"] == 1 and slices["workgroup 9"]["dur"] == (end[9] - begin[9]) / 1e9
    misses = sum(one["args"]["misses"] for one in events if one["name"] == "L2 misses")
    assert misses == traffic.l2_misses
    of_code = scorer.fetches.sum(axis=0)  # fetched by no workgroup
    assert requests.sum() == traffic.l2_requests - of_code[1:3].sum() and missed.sum() == misses - of_code[3]
    assert slices["workgroup 9"]["args"]["L2 misses"] == missed[9] > 0


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
