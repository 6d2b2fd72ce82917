"""Are the prompts of the suite those that were read, true to the replay, short, and silent where they have to be?"""

import dataclasses
import json
import re

import numpy as np
import pytest

from swizzle_agent.contexts import hardware_text, known_orders, language_card, source_of
from swizzle_agent.prompts import Briefing
from swizzle_agent.settings import Settings
from swizzle_sim.language import Swizzle
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.report.bottleneck import CONFLICTS, EITHER, _causes
from swizzle_sim.search.candidates import LAUNCH_ORDER
from swizzle_sim.search.judge import Judge
from swizzle_sim.search.ranking import default_objectives
from swizzle_sim.workload.kernels import kernel
from tests.agent.prompts import Notes, briefed
from tests.golden.commands import SIZES
from xcd_model import gpu
from xcd_model.cache.packed import index_of

CHARS_PER_TOKEN = 3  # of JSON with figures; English has 4
FULL = 280  # tokens that an attempt may add


@pytest.mark.parametrize("name", SIZES)
def test_a_prompt_is_true_to_the_replay(name):
    scorer, attempts, inputs = briefed(name)
    launched, report = attempts[0].score, inputs["bottleneck_report"]
    figures = report["launch_order"]
    assert figures["l2_hit_rate_pct"] == round(100 * launched.l2_hit_rate, 2)
    said = json.dumps(inputs, ensure_ascii=False)
    decides = default_objectives(scorer.gpu.name, "timed", scorer.work_class)[0].name == "time"
    assert bool(re.search(r"time_us|\d (us|µs)\b", said)) == decides, "times are told where they decide"
    assert "no other order" not in said
    assert max(figures["busy_pct"].values()) <= 100 and figures["limit"]
    fewest = 100 * scorer.bound.l2_misses / launched.l2_requests
    assert figures["points_left"] == pytest.approx(100 - figures["l2_hit_rate_pct"] - fewest, abs=0.02)
    named = sum(sum(kinds.values()) for kinds in figures["misses_pct"].values())
    assert 94 < named < 101, "kinds under half a percent are not named"
    for entry in inputs["history"]:
        assert len(json.dumps(entry)) < FULL * CHARS_PER_TOKEN


def test_a_duplicate_has_the_earlier_result_and_a_collision_its_coordinates():
    inputs = briefed("gemm")[2]
    first, duplicate, collision = inputs["history"]
    same = f"{first['l2_hit_rate_pct']:.2f} %"
    assert duplicate["feedback"] == f"the same permutation as attempt 1, which had {same}"
    assert collision["feedback"].endswith("; as (pid_m, pid_n), tile 0 is (0, 0) and tile 7 is (0, 7)")
    assert first["place"] == "1" and inputs["bottleneck_report"]["best"]["attempt"] == 1


def test_an_order_worse_than_the_launch_order_comes_after_it():
    inputs = briefed("smith_waterman")[2]
    launched, tried = inputs["bottleneck_report"]["launch_order"], inputs["history"][0]
    assert launched["l2_hit_rate_pct"] > tried["l2_hit_rate_pct"]
    assert (launched["place"], tried["place"]) == ("1", "2")
    same = briefed("softmax")[2]  # no row is shared: every order has the hits of the launch order
    assert same["bottleneck_report"]["launch_order"]["place"] == same["history"][0]["place"] == "=1"


def test_times_are_told_where_they_rank(small):
    """On an H200 they do; an order with fewer hits that is faster is no warning, nor one with more hits that is not."""
    scorer = Scorer(small, gpu("h200"))
    judge = Judge(scorer)
    attempts = [judge.judge(LAUNCH_ORDER, 0), judge.judge("pid = num_pids - 1 - pid")]
    briefing = Briefing(scorer, Settings(models=("openai/model",)), Notes(), None, judge.ranking)
    report = briefing.proposal(attempts, "")["bottleneck_report"]
    assert report["launch_order"]["time_us"] == round(attempts[0].score.time_us, 1)
    assert "speedup" in briefing.report(attempts[1]) and "predicted time" in report["objective"].lower()


def test_small_tables_are_told():
    _, _, inputs = briefed("grouped_gemm")
    assert inputs["bottleneck_report"]["index_tables"]["expert_ptr"] == "0 x 2, 1 x 2, 2 x 2, 3 x 2, 4, 5, 6, 7"


@pytest.mark.parametrize("name", SIZES)
def test_the_unaware_arm_hears_of_no_hardware(name):
    work = kernel(name)
    said = " ".join(
        (work.sharing, source_of(work), hardware_text("unaware", None), language_card(work, schedule=False))
    )
    assert not any(word in said for word in ("XCD", "MI300", "chiplet", "Infinity", "every L2", "each L2"))


def test_the_unaware_arm_hears_of_none_in_its_figures():
    tried = ("pid = num_pids - 1 - pid", "pid = other", "pid = pid ^ 1")
    said = json.dumps(briefed("layer_norm", context="unaware", tried=tried)[2])
    assert "points_left" in said
    assert not any(word in said.lower() for word in ("xcd", "mi300", "infinity", "busy", "drift", "elsewhere", "cus"))


def test_source_without_docstrings_still_parses(small):
    text = source_of(small)
    assert text.startswith("@triton.jit") and '"""' not in text and "tl.dot" in text
    compile(text, "kernel", "exec")
    assert source_of(dataclasses.replace(small, triton_source="__global__ void k() {}")).startswith("__global__")


def test_strides_reach_as_few_sets_as_is_said():
    l2 = dataclasses.replace(gpu("mi300x").l2, index_rows=(0x13A80100, 0x5E180800, 0x6E281000, 0xD710000))
    found = index_of(l2, 1 << 24)
    line = np.arange(1 << 10, dtype=np.int64) * (l2.size_bytes // l2.ways // l2.line_bytes)
    assert np.unique((line & found.mask) ^ found.hash[line >> found.shift]).size == 16
    device = dataclasses.replace(gpu("mi300x"), l2=l2)
    said = hardware_text("aware", Scorer(kernel("gemm", M=512, N=512, K=128), device, replay="lockstep"))
    assert "256 KiB or a larger power of two apart reach at most 16 sets" in said


def test_the_hardware_is_told_with_its_room_and_its_xcds_where_it_has_some(small, mi300x):
    said = hardware_text("aware", Scorer(small, mi300x, replay="lockstep"))
    assert "all 64 run at the same time, at most 8 on each XCD" in said
    said = hardware_text("aware", Scorer(small, gpu("h200"), replay="lockstep"))
    assert "132 SMs behind one L2" in said and "round robin" not in said and "MI300" not in said


def test_the_hardware_gives_programs_their_ids_and_programs_take_tiles():
    inputs = briefed("attention_persistent")[2]
    assert (
        "hands out programs" in inputs["hardware"] and "linear id of the tile that a program took" in inputs["language"]
    )
    assert "the hardware starts as workgroup p" in inputs["bottleneck_report"]["persistent"]


def test_conflicts_and_drift_that_cancel_are_one_number():
    causes = _causes({"first touch": 10.0}, 60.0, 30.0)
    assert causes == {"first touch": 10.0, EITHER: 20.0}
    assert _causes({"first touch": 10.0}, 20.0, 30.0)[CONFLICTS] == 10.0


def test_the_names_of_families_are_told_as_answers_and_are():
    """To the unaware arm only those that know of no XCDs."""
    work = kernel("gemm", M=1024, N=1024, K=128)
    for schedule in (True, False):
        names = [name for places in (True, False) for name in known_orders(work.grid, schedule, places=places)]
        assert ("contiguous" in names) is schedule and "row" in names
        for name in names:
            assert Swizzle.parse(name).verify(work.grid, 8, lattice=[]).n_workgroups == work.grid.num_pids
    card = language_card(work)
    assert "which the text may use by name: M = 1024" in card and card.endswith("such as reverse+row.")


def test_what_the_rewritten_kernel_takes_is_told(small, mi300x):
    scorer, attempts, _ = briefed("gemm")
    briefing = Briefing(
        scorer,
        Settings(models=("openai/model",)),
        Notes(),
        None,
        price_of=lambda attempt: "118 -> 140 registers, 2 -> 1 workgroups a CU" if attempt.number else "",
    )
    history = briefing.proposal(attempts, briefing.analysis)["history"]
    assert [entry.get("registers") for entry in history] == ["118 -> 140 registers, 2 -> 1 workgroups a CU", None, None]


def test_launches_in_a_row_say_what_the_caches_keep():
    warm = briefed("fdtd_2d")[2]["bottleneck_report"]["launches"]
    assert "counted is launch 3" in warm and "the L2s do not keep" in warm and "the Infinity Cache keeps it" in warm
    kept = briefed("fdtd_2d", gpu_name="h200", tried=())[2]["bottleneck_report"]
    assert "the L2s keep" in kept["launches"] and "points_left" not in kept["launch_order"]
