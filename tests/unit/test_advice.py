"""Does the first line say what to do, why and what limits the time, in each case?"""

import shlex
from dataclasses import replace

import pytest

from swizzle_benchmarks.suite.flash_attention import attention
from swizzle_benchmarks.suite.gemm import gemm
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.search.advice import advise, advise_run, limit_of
from swizzle_sim.search.ranking import OBJECTIVES, Ranking
from tests.unit.test_ranking import BASE, attempt, ends, priced
from xcd_model import gpu

HITS = Ranking(gpu="mi300x")
BY_TIME = Ranking((OBJECTIVES["time"],), gpu="h200")


@pytest.fixture(scope="module")
def amd():
    return Scorer(gemm(M=8192, N=8192, K=256), gpu("mi300x"))


@pytest.fixture(scope="module")
def nvidia():
    return Scorer(gemm(M=4096, N=4096, K=256, BLOCK_M=128, BLOCK_N=128), gpu("h200"))


def test_a_time_that_ranks_is_used(nvidia):
    found = advise(nvidia, BY_TIME, BASE, attempt(1, 80.0, 0.6), tied=["b", "c", "d"], run="runs/x")
    assert found.verdict == "use" and found.line.startswith("use a1: predicted 20.0 % faster (100.0 to 80.0 µs)")
    assert "tied with b, c and 1 more" in found.why and "do not rank" not in found.why
    assert [shlex.split(one)[1] for one in found.next] == ["score", "rewrite", "bundle"]
    assert "--seeds 5" in found.next[0] and all("runs/x" in one for one in found.next)


def test_a_time_that_does_not_rank_is_to_be_measured(amd):
    found = advise(amd, HITS, BASE, attempt(1, 80.0, 0.6))
    assert found.verdict == "try" and found.what == "try a1, and measure"
    assert found.why.startswith("L2 hit rate 50.0 to 60.0 %; predicted 20.0 % faster")
    assert "times do not rank orders here: 23 of 62 measured pairs" in found.why
    slower = advise(amd, HITS, BASE, attempt(1, 125.0, 0.6))
    assert slower.verdict == "try" and "predicted 25.0 % slower (100.0 to 125.0 µs)" in slower.why


def test_more_hits_alone_are_no_reason_where_times_rank(nvidia):
    found = advise(nvidia, Ranking(gpu="h200"), BASE, attempt(1, 125.0, 0.6))
    assert (found.verdict, found.what) == ("slower", "keep the launch order: a1 is better in L2 hit rate alone")


def test_lost_occupancy_comes_first(nvidia):
    found = advise(nvidia, BY_TIME, BASE, attempt(1, 80.0, 0.6, price=priced(140, 1)))
    assert found.verdict == "loses-occupancy" and found.what == "do not use a1 as emitted"
    assert found.why.startswith("registers 118 to 140, workgroups a CU 2 to 1")


def test_a_tie_that_reads_less_is_to_be_measured_where_such_orders_were_faster(amd, nvidia, monkeypatch):
    monkeypatch.setattr("swizzle_sim.search.ranking.reads_break_ties", lambda gpu: gpu == "h200")
    found = advise_run(nvidia, BY_TIME, [attempt(0), attempt(1, 100.2, read=500)], "runs/x")
    assert (found.verdict, found.what) == ("try", "try a1, and measure") and "GB from HBM" in found.why
    assert [shlex.split(one)[1] for one in found.next] == ["score", "rewrite", "bundle"]
    assert advise_run(nvidia, BY_TIME, [attempt(0), attempt(1, 99.95, read=950)], "runs/x").verdict == "keep"
    by_time = Ranking((OBJECTIVES["time"],), gpu="mi300x")
    assert advise_run(amd, by_time, [attempt(0), attempt(1, 99.95, read=500)], "runs/x").verdict == "keep"


def test_what_is_not_told_apart_leaves_the_launch_order(amd, nvidia):
    tie = advise(nvidia, BY_TIME, BASE, attempt(1, 99.95))
    assert tie.verdict == "keep" and "which the model does not tell apart" in tie.why
    none = advise_run(nvidia, BY_TIME, [attempt(0), attempt(1, 150.0)], "runs/x")
    assert none.line.startswith("keep the launch order: no candidate is better in predicted time")
    tied = advise_run(nvidia, BY_TIME, [attempt(0), attempt(1, 99.95)], "runs/x")
    assert "a1 gain nothing in predicted time" in tied.why
    bound = advise_run(amd, HITS, [attempt(0, rate=0.9), attempt(1, rate=0.6)], "runs/x")
    assert "is the bound, which no balanced order exceeds" in bound.why
    worse = advise(nvidia, BY_TIME, BASE, attempt(1, 150.0))
    assert worse.what == "keep the launch order, not a1" and "50.0 % slower" in worse.why
    assert [shlex.split(one)[1] for one in worse.next] == ["ceiling", "optimize"]


@pytest.mark.parametrize(
    ("name", "busy_us", "said"),
    [
        ("compute", 95.0, "bound by arithmetic: 95.0 of 100.0 µs; no other order can help"),
        ("hbm", 92.0, "bound by HBM: 92.0 of 100.0 µs"),
        ("l2", 40.0, "waits for loads: the L2, the busiest, is busy 40.0 of 100.0 µs"),
    ],
)
def test_the_limit_is_the_resource_that_is_busy_all_the_time(amd, name, busy_us, said):
    assert limit_of(amd, replace(BASE, busy_us={name: busy_us, "mall": 1.0})) == said


def test_the_limit_of_a_launch_order_that_is_kept_is_its_own(amd):
    """A candidate of fewer hits may be bound by arithmetic: that is no reason why nothing can help the launch order."""
    busy = attempt(1, 60.0, rate=0.1)
    busy = replace(busy, score=replace(busy.score, busy_us={"compute": 59.0}))
    base = replace(BASE, l2_hit_rate=0.8, busy_us={"hbm": 95.0})
    found = advise(amd, HITS, base, busy)
    assert found.what == "keep the launch order, not a1" and "bound by HBM: 95.0 of 100.0" in found.limit
    uneven = Scorer(attention(CAUSAL=True), gpu("mi300x"))
    assert limit_of(uneven, replace(BASE, busy_us={"compute": 95.0})) == "bound by arithmetic: 95.0 of 100.0 µs"


def test_uneven_work_is_named_by_its_last_xcd_or_by_what_even_work_would_take(amd):
    late = limit_of(amd, replace(amd.baseline, balance=ends(180.0, first=100.0)))
    assert late == "XCDs end unevenly: the last XCD ends 1.8 times later than the first"
    assert limit_of(amd, replace(amd.baseline, balance=ends(135.0))) == (
        "the last round of workgroups leaves CUs idle: the time is 1.35 times what even work would take"
    )  # every workgroup of a GEMM has the same work


def test_few_workgroups_limit_before_anything_that_waits(amd):
    few = Scorer(gemm(M=1024, N=2048, K=256), gpu("mi300x"))
    assert limit_of(few, replace(BASE, busy_us={"compute": 4.0})) == "32 workgroups on 304 CUs"
    assert limit_of(amd, BASE) == ""  # a run of an earlier version


def test_the_limit_explains_the_time_of_a_real_score(amd):
    score = amd.baseline
    assert 0 < max(score.busy_us.values()) <= score.time_us
    assert score.busy_us[score.limiter] == max(score.busy_us.values())


def test_a_gpu_that_has_no_name_gets_no_command_to_paste(amd):
    other = Scorer(amd.kernel, replace(amd.gpu, name="mi300x[xcds=8]"), replay="lockstep")
    found = advise(other, HITS, BASE, attempt(1, 80.0, 0.6), run="runs/x")
    assert found.next == ("swizzle-sim bundle runs/x",) and found.limit == ""


def test_one_xcd_of_a_chip_has_nothing_to_swizzle_over(nvidia):
    cpx = Scorer(gemm(M=1024, N=1024, K=256, BLOCK_M=128, BLOCK_N=128), gpu("mi308x-cpx"))
    said = "mi308x-cpx is one XCD with one L2: nothing to swizzle over XCDs"
    ranking = Ranking(gpu="mi308x-cpx")
    assert said in advise(cpx, ranking, BASE, attempt(1, 80.0, 0.6)).why  # an order that gains in its one L2
    assert said in advise(cpx, ranking, BASE, attempt(1, 100.0)).why
    assert "one XCD" not in advise(nvidia, BY_TIME, BASE, attempt(1, 80.0)).why  # which has no XCDs
