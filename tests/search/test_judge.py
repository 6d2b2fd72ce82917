"""Does each rung say no in its turn, with its code, and does the reward follow?"""

import dataclasses

import pytest

from swizzle_agent import reward, rewards
from swizzle_benchmarks.suite.spmv import spmv
from swizzle_sim.language import Swizzle, family
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.search.judge import Judge
from swizzle_sim.workload.kernels import kernel
from xcd_model import gpu

CASES = {
    "pid = (": ("parse", "parse-syntax"),
    "import os": ("parse", "parse-node"),
    "pid = open('x')": ("parse", "parse-call"),
    "pid = nothing": ("parse", "parse-name"),
    "rows = 1": ("parse", "parse-result"),
    "pid = 0": ("grid", "grid-collision"),
    "pid = pid + 1": ("grid", "grid-out-of-range"),
    "pid = pid * 2147483647": ("grid", "grid-overflow"),
    "pid = pid // (pid - pid)": ("grid", "grid-division-by-zero"),
    family("group_m(size=4)"): ("full replay", "scored"),
    family("contiguous_naive"): ("full replay", "scored-partial"),
}


def code(attempt):
    return attempt.verdict["code"]


@pytest.mark.parametrize("text", CASES)
def test_stage_and_code(small, mi300x, text):
    found = Judge(Scorer(small, mi300x, replay="lockstep")).judge(text)
    assert (found.verdict["stage"], code(found)) == CASES[text]
    assert (found.score is None) == (not code(found).startswith("scored"))
    assert found.critique or code(found) == "scored"


def test_the_same_permutation_twice(small, mi300x):
    judge = Judge(Scorer(small, mi300x, replay="lockstep"))
    assert code(judge.judge("group_m(size=4)")) == "scored"
    found = judge.judge("# in other words\n" + family("group_m(size=4)"), 2)
    assert code(found) == "duplicate"
    assert found.critique.startswith("the same permutation as attempt 1, which had ")


def test_what_is_far_worse_in_lockstep_is_not_replayed_in_full(mi300x):
    from swizzle_benchmarks.suite.gemm import gemm

    judge = Judge(Scorer(gemm(K=512), mi300x, replay="timed"), far_worse=True)
    found = judge.judge("contiguous")
    assert (code(found), found.score) == ("small-replay-worse", None)
    assert code(judge.judge("pid = num_pids - 1 - pid", 2)) == "scored"


def test_beating_the_bound_is_a_defect(small, mi300x):
    scorer = Scorer(small, mi300x, replay="lockstep")
    scorer.__dict__["bound"] = dataclasses.replace(scorer.bound, l2_misses=10**9)
    found = Judge(scorer).judge("group_m(size=4)")
    assert (code(found), found.score) == ("above-bound", None) and "report this" in found.critique


def test_reward_orders_candidates(small, mi300x):
    texts = ["pid = (", "pid = 0", family("identity"), family("group_m(size=4)")]
    paid = [reward(small, text, mi300x, replay="lockstep") for text in texts]
    assert paid[:3] == [0.0, 0.1, 0.2] and 0.2 < paid[3] <= 1
    assert reward(small, texts[3], mi300x, replay="lockstep") == paid[3]
    everywhere = family("contiguous+group_m(size=4)")
    here = family("contiguous_naive") + family("group_m(size=4)")
    whole, part = (reward(small, text, mi300x, replay="lockstep") for text in (everywhere, here))
    assert part == pytest.approx(0.2 + 0.9 * (whole - 0.2)), "what holds here alone is paid less"


def test_reward_counts_what_can_be_gained_in_the_requests_that_l1s_leave(mi300x):
    """Most reads of x end in an L1: the bound of all requests is far above any order's rate, and nobody's to gain."""
    assert reward(spmv(M=512, N=512), family("contiguous"), mi300x) > 0.8


def test_rewards_of_many_are_those_of_each(small, mi300x):
    texts = ["pid = (", "group_m(size=4)", family("group_m(size=4)"), "done", "identity"]
    assert rewards(small, texts, mi300x, replay="lockstep") == [
        reward(small, text, mi300x, replay="lockstep") for text in texts
    ]


def test_a_right_done_is_paid_and_a_wrong_one_is_not(small, mi300x):
    """Of a copy no order gains: whatever keeps its hits is as right as saying so."""
    copy = kernel("fused_elementwise", n_elements=1 << 20)
    assert rewards(copy, ["done", "pid = num_pids - 1 - pid"], mi300x) == [1.0, 1.0]
    assert reward(small, "Done", mi300x, replay="lockstep") == 0.2


def test_where_work_is_uneven_the_makespan_is_half_of_the_reward(mi300x):
    causal = kernel("attention", H=32, S=2048, CAUSAL=1)
    hits, both = rewards(causal, ["contiguous", "contiguous+longest_first(size=2)"], mi300x)
    assert 0.2 < hits < both, "the same hits, and the longest first"


def test_where_times_rank_they_are_what_is_paid():
    work = kernel("gemm", M=4096, N=4096, K=128, BLOCK_M=64, BLOCK_N=64)
    scorer = Scorer(work, gpu("h200"))
    texts = ["pid = num_pids - 1 - pid", "group_m(size=8)", "pid = (pid % 64) * 64 + pid // 64"]
    times = [scorer.score(Swizzle.read(text)).time_us for text in texts]
    paid = rewards(work, texts, gpu("h200"))
    for time, one in zip(times, paid, strict=True):
        assert (one > 0.2) == (time < scorer.baseline.time_us)


def test_the_public_api_is_what_it_says():
    """A module of the same name must not stand in for a function, whichever was imported first."""
    import swizzle_agent
    import swizzle_agent.tune  # imports most of the room

    assert callable(swizzle_agent.reward) and sorted(swizzle_agent.__all__) == swizzle_agent.__all__
    assert all(getattr(swizzle_agent, name).__name__ == name for name in swizzle_agent.__all__)
