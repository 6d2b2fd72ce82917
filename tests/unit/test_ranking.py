"""Is an order of candidates what the objective, the ties and the conditions say, and never more than is known?"""

import json
import math
import shlex
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from swizzle_benchmarks.suite.flash_attention import attention
from swizzle_benchmarks.suite.gemm import gemm
from swizzle_sim.pricing.scores import Balance, Score
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.search.advice import advise_run, limit_of
from swizzle_sim.search.bench import score_on
from swizzle_sim.search.history import Attempt
from swizzle_sim.search.ranking import (
    LESS_MOVED,
    OBJECTIVES,
    UNEVEN,
    Evidence,
    Ranking,
    chosen_objectives,
    default_objectives,
    evidence_of,
    gain_of,
    ranking_of,
    times_note,
)
from swizzle_sim.workload.price import RemapPrice
from tests.machines import COMPILED
from xcd_model import gpu

BASE = Score(
    l2_hit_rate=0.5, mall_hit_rate=0.5, l2_requests=100, l2_hits=50, l2_misses=50, hbm_read_bytes=1000,
    hbm_write_bytes=0, time_us=100.0, speedup=1.0, limiter="hbm", bound_l2_hit_rate=0.9, per_xcd_l2_hit_rate=(0.5,),
    energy_j=1.0, energy_low_j=0.5, energy_high_j=2.0,
)  # fmt: skip


def priced(registers, workgroups):
    return RemapPrice(before=COMPILED, after=replace(COMPILED, registers=registers, workgroups_per_cu=workgroups))


def ends(makespan, ideal=100.0, first=None):
    return Balance(
        per_xcd_instructions=(1, 1),
        per_xcd_finish=(first or makespan, makespan),
        makespan=makespan,
        ideal=ideal,
        tail=0.0,
    )


def attempt(number, time_us=100.0, rate=0.5, source="", price=None, balance=None, read=BASE.hbm_read_bytes):
    score = replace(BASE, time_us=time_us, speedup=100.0 / time_us, l2_hit_rate=rate, price=price, balance=balance)
    score = replace(score, hbm_read_bytes=read)
    return Attempt(number=number, name=f"a{number}", source=source, proposer="", verdict={}, score=score)


def numbers(groups):
    return [[one.number for one in group] for group in groups]


BY_TIME = Ranking((OBJECTIVES["time"],), gpu="h200")


def test_time_decides_where_measured_pairs_say_that_it_ranks():
    measured = evidence_of("h200", "time")
    assert measured.ranks and measured.source
    assert measured.right >= 0.9 * measured.pairs or (measured.launches >= 30 and measured.lost < measured.launched)
    assert [one.name for one in default_objectives("h200", "timed")] == ["time"]
    for name, replay in (("mi300x", "timed"), ("mi355x", "timed"), ("h200", "lockstep"), ("mine", "timed")):
        assert [one.name for one in default_objectives(name, replay)] == ["l2_hit_rate"], name
    assert [one.name for one in chosen_objectives("time", "mi300x", "timed")] == ["time"]
    ties = evidence_of("h200", LESS_MOVED)  # with fewer reads: faster than a coin says
    assert ties.pairs > 100 and ties.right > 0.8 * ties.pairs
    known, nobody = evidence_of("mi300x", "time"), evidence_of("mine", "time")
    assert f"{known.right} of {known.pairs} measured pairs" in times_note("mi300x", "timed")
    assert "do not rank" in times_note("mi300x", "timed") and "rank no orders" in times_note("h200", "lockstep")
    assert not nobody.ranks and nobody.tells_apart > 0 and "no measured pair" in nobody.sentence()


def test_what_the_model_does_not_tell_apart_is_a_tie():
    assert BY_TIME.tolerance == evidence_of("h200", "time").tells_apart > 0
    inside, outside = math.exp(0.9 * BY_TIME.tolerance), math.exp(1.1 * BY_TIME.tolerance)
    best, near, far = (
        attempt(1, 50.0, source="long text"),
        attempt(2, 50.0 * inside, source="text"),
        attempt(3, 50.0 * outside, source="t"),
    )
    given = [attempt(0), best, near, far]
    assert numbers(BY_TIME.groups(given)) == [[2, 1], [3], [0]]  # the shorter text first
    assert BY_TIME.places(given) == {2: "=1", 1: "=1", 3: "3"}
    assert BY_TIME.places(given, with_launch_order=True) == {2: "=1", 1: "=1", 3: "3", 0: "4"}
    tie = [attempt(0), attempt(1, 99.95)]  # which the launch order wins
    assert numbers(BY_TIME.groups(tie)) == [[0, 1]] and BY_TIME.order(tie)[0].number == 0


def test_what_choosing_by_it_loses_says_whether_a_figure_ranks():
    """Pairs that come right in six of seven are enough where the choice loses less than the launch order."""
    known = Evidence("g", "time", pairs=70, right=60, launches=30, lost=0.01, launched=0.02)
    assert known.ranks and not replace(known, lost=0.02).ranks and not replace(known, launches=29).ranks
    assert not replace(known, pairs=29).ranks and replace(known, launches=0, right=63).ranks


@pytest.mark.parametrize("ranking", [BY_TIME, Ranking(gpu="mi300x")], ids=["time", "hits"])
def test_bytes_then_misses_then_time_break_a_tie_and_the_launch_order_goes_first_where_none_does(ranking):
    def moving(number, written, misses, time_us=100.2):
        one = attempt(number, time_us)
        return replace(one, score=replace(one.score, hbm_write_bytes=written, l2_misses=misses))

    given = [moving(0, 1000, 100), moving(1, 1000, 60), moving(2, 600, 100), moving(3, 630, 80), moving(4, 950, 99)]
    assert [one.number for one in ranking.order(given)] == [3, 2, 1, 0, 4]
    first = "even ends break, then fewer HBM bytes" if ranking is BY_TIME else "fewer HBM bytes break"
    assert f"which {first}, then fewer L2 misses" in ranking.sentence()
    best = attempt(5, 90.0, 0.6)
    assert numbers(ranking.groups([*given, best]))[0] == [5], "bytes say nothing beyond the tolerance"


def test_of_orders_that_tie_in_hits_bytes_decide_then_times_whatever_else_was_tried():
    """Split-K GEMM: two orders of 74.5 and 74.75 % and equal reads, of which the shorter text writes more."""
    by_rate = Ranking(gpu="mi300x")
    inside = 0.9 * by_rate.tolerance
    short, long = attempt(1, 64.15, 0.8 - inside, "short"), attempt(2, 61.21, 0.8, "a longer text")
    short, long = (
        replace(one, score=replace(one.score, hbm_read_bytes=75_500_000, hbm_write_bytes=written))
        for one, written in ((short, 67_100_000), (long, 40_600_000))
    )
    other = attempt(3, 70.0, 0.8 + inside / 10, "s")
    other = replace(other, score=replace(other.score, hbm_read_bytes=150_000_000))
    assert [one.number for one in by_rate.order([attempt(0, 70.0), short, long])][:2] == [2, 1]
    assert [one.number for one in by_rate.order([attempt(0, 70.0), short, long, other])][:2] == [2, 1]
    faster = replace(short, score=replace(short.score, hbm_write_bytes=40_600_000, time_us=60.0))
    assert by_rate.order([attempt(0, 70.0), faster, long])[0].number == 1


def test_what_other_constants_do_not_tell_from_the_best_ties_with_it(tmp_path):
    given = [attempt(0), attempt(1, 50.0, source="long"), attempt(2, 60.0, source="s"), attempt(3, 70.0)]
    pairs = [{"number": 2, "apart": False}, {"number": 0, "apart": True}]
    (tmp_path / "uncertainty.json").write_text(json.dumps({"pairs": pairs}))
    ranking = ranking_of({"gpu": "h200", "objectives": ["time"]}, tmp_path)
    assert numbers(ranking.groups(given)) == [[1, 2], [3], [0]]
    assert "whose lead other plausible constants undo, are ties" in ranking.sentence()
    (tmp_path / "uncertainty.json").write_text("[")
    assert numbers(ranking_of({"gpu": "h200", "objectives": ["time"]}, tmp_path).groups(given)) == [[1], [2], [3], [0]]


def test_lost_occupancy_is_a_condition_of_hits_and_part_of_a_time():
    loses, keeps = attempt(1, 50.0, 0.9, price=priced(140, 1)), attempt(2, 60.0, 0.6, price=priced(118, 2))
    given = [attempt(0), loses, keeps]
    assert numbers(Ranking(gpu="mi300x").groups(given)) == [[2], [0], [1]]
    assert numbers(BY_TIME.groups(given)) == [[1], [2], [0]]


def test_an_order_less_even_than_the_most_even_is_behind_it_whatever_it_hits():
    """Swizzled head-first attention has all its hits, and a makespan of 1.8 times the ideal; so has a launch order."""
    by_rate = Ranking(gpu="mi300x")
    launch, folded = attempt(0, rate=0.5, balance=ends(105.0)), attempt(1, rate=0.9, balance=ends(180.0))
    assert numbers(by_rate.groups([launch, folded])) == [[0], [1]]
    other_way = attempt(0, rate=0.9, balance=ends(180.0)), attempt(1, rate=0.5, balance=ends(105.0))
    assert numbers(by_rate.groups(other_way)) == [[1], [0]]
    near = attempt(2, rate=0.8, balance=ends(105.0 * UNEVEN))
    assert numbers(by_rate.groups([launch, folded, near])) == [[2], [0], [1]]
    few = attempt(0, rate=0.5, balance=ends(1200.0)), attempt(1, rate=0.9, balance=ends(1500.0))  # 24 on 304 CUs
    assert numbers(by_rate.groups(few)) == [[1], [0]]
    launch, uneven = attempt(0, 100.0, balance=ends(105.0)), attempt(1, 50.0, balance=ends(180.0))
    assert numbers(BY_TIME.groups([launch, uneven])) == [[1], [0]], "a predicted time has its balance in it"
    tied = attempt(1, 50.0, balance=ends(180.0), read=1), attempt(2, 50.0, balance=ends(105.0))
    assert numbers(BY_TIME.groups([launch, *tied])) == [[2, 1], [0]], "of times that tie the even end goes first"


def test_what_is_predicted_slower_and_ranked_above_the_launch_order_is_named():
    given = [attempt(0), attempt(1, 101.2, 0.9), attempt(2, 90.0, 0.8), attempt(3, 150.0, 0.4)]
    assert [one.number for one in Ranking(gpu="mi300x").slower(given)] == [1]
    assert BY_TIME.slower(given) == []


def test_two_objectives_rank_their_front_first():
    both = Ranking((OBJECTIVES["time"], OBJECTIVES["l2_hit_rate"]), gpu="h200")
    given = [attempt(0), attempt(1, 50.0, 0.4), attempt(2, 80.0, 0.9), attempt(3, 90.0, 0.3)]
    assert numbers(both.groups(given)) == [[1, 2], [3], [0]]
    assert both.places(given) == {1: "1", 2: "2", 3: "3"}
    assert [one.name for one in ranking_of({"gpu": "h200"}).objectives] == ["l2_hit_rate"]  # of an older version
    old = ranking_of({"gpu": "h200", "search": {"objectives": ["hbm_bytes"], "sizes": [{}]}})
    assert (old.main.name, old.sizes) == ("hbm_bytes", 2)


# ---- Does the first line say what to do, why and what limits the time, in each case?
HITS = Ranking(gpu="mi300x")


@pytest.fixture(scope="module")
def amd():
    return Scorer(gemm(M=8192, N=8192, K=256), gpu("mi300x"))


@pytest.fixture(scope="module")
def nvidia():
    return Scorer(gemm(M=4096, N=4096, K=256, BLOCK_M=128, BLOCK_N=128), gpu("h200"))


def advise(scorer, ranking, *others, run=""):
    return advise_run(scorer, ranking, [attempt(0), *others], run)


def test_a_gain_beyond_what_the_model_gets_wrong_is_used(nvidia):
    ties = [replace(attempt(n, 80.1, source="a longer text"), name=name) for n, name in enumerate("bcd", 2)]
    found = advise(nvidia, BY_TIME, attempt(1, 80.0, 0.6), *ties, run="runs/x")
    assert found.verdict == "use" and found.what.startswith("use it: a1, time -27 to -10 %; hits 50.0 to 60.0 %, HBM")
    assert found.time_pct[1] < 0 and "tie: b, c and 1 more" in found.why and "80.0 µs" in found.why
    assert [shlex.split(one)[1] for one in found.next] == ["report", "rewrite", "bundle"]


def test_a_gain_within_what_the_model_gets_wrong_or_without_judged_rows_is_measured(amd, nvidia):
    unproven = advise(amd, HITS, attempt(1, 80.0, 0.6))
    assert (unproven.verdict, unproven.time_pct) == ("measure", None)
    assert unproven.what.startswith("measure it: a1, time -20.0 %, unproven; hits 50.0 to 60.0 %")
    small = advise(amd, HITS, attempt(1, 99.5, 0.6, read=500))
    assert small.what.startswith("measure it: a1, hits 50.0 to 60.0 %, HBM") and "; time about the same" in small.what
    assert "hits put 18 of 19 measured pairs right" in small.why
    found = advise(nvidia, BY_TIME, attempt(1, 95.0, 0.6))
    assert found.verdict == "measure" and "time -13 to +7 %" in found.what
    assert [shlex.split(one)[1] for one in found.next] == ["score", "rewrite", "bundle"]
    assert found.next[0].startswith("swizzle-sim score gemm M=4096 N=4096 K=256 BLOCK_M=128")
    chosen = replace(BY_TIME, objectives=(OBJECTIVES["hbm_bytes"],))
    assert advise(nvidia, chosen, attempt(1, 80.0, read=500)).verdict == "measure", "use it is said of times alone"


@pytest.mark.parametrize("gpu_name", ["h200", "h100", "mi300x", "mi355x", "mine"])
@pytest.mark.parametrize("work_class", ["uneven", "compute", "memory"])
def test_an_interval_is_told_and_used_only_where_judged_rows_bear_it(gpu_name, work_class):
    known = gain_of(gpu_name, work_class)
    if known is None:
        return
    assert known.launches >= 10 and known.low < known.middle < known.high
    assert (known.percent(1.1) is not None) == (0.85 <= known.inside <= 0.95)
    assert known.proven == (known.used >= 1 and known.right >= 0.95 * known.used)
    assert replace(known, inside=0.5).percent(1.1) is None and not replace(known, right=0).proven


def test_an_order_predicted_slower_is_left_but_where_hits_rank_its_class(amd, nvidia):
    found = advise(nvidia, Ranking(gpu="h200"), attempt(1, 125.0, 0.6))
    assert found.verdict == "leave" and found.what.startswith("leave it: a1 is predicted 25.0 % slower")
    assert advise(amd, HITS, attempt(1, 101.0, 0.6)).verdict == "leave", "as many misses"
    fewer = attempt(1, 101.0, 0.6)
    fewer = replace(fewer, score=replace(fewer.score, l2_misses=30))
    assert amd.work_class == "compute" and advise(amd, HITS, fewer).verdict == "measure"


def test_even_ends_are_a_reason_by_themselves(amd):
    launch, even = attempt(0, 100.0, 0.9, balance=ends(180.0)), attempt(1, 100.0, 0.6, balance=ends(105.0))
    found = advise_run(amd, HITS, [launch, even])
    assert found.verdict == "measure" and "CUs end at 1.80 to 1.05 times the ideal" in found.why


def test_a_costly_remap_is_left_whatever_it_gains_and_what_gets_worse_is_said(nvidia):
    worse = advise(nvidia, BY_TIME, attempt(1, 80.0, price=priced(120, 2), read=1500))
    assert worse.worse == ("traffic", "registers") and worse.what.endswith("; worse: traffic/registers")
    found = advise(nvidia, BY_TIME, attempt(1, 80.0, 0.6, price=priced(140, 1)))
    assert found.verdict == "leave" and found.what.startswith("leave it: a1 costs occupancy/registers")
    assert "118 -> 140 registers, 2 -> 1 workgroups" in found.why


def test_a_tie_that_moves_or_misses_less_is_measured_if_it_is_worth_it(amd, nvidia):
    assert advise(nvidia, BY_TIME, attempt(1, 100.0, read=500)).verdict == "measure"
    tie = advise(nvidia, BY_TIME, attempt(1, 99.95, read=950))
    assert tie.what == "leave it: no order tried is better"
    few = Scorer(gemm(M=1024, N=2048, K=256), gpu("mi300x"))
    launch, one = attempt(0), attempt(1, 99.5, 0.9, read=500)
    launch = replace(launch, score=replace(launch.score, busy_us={"compute": 4.0}))
    found = advise_run(few, HITS, [launch, one])
    assert found.what == "leave it: a1 gains 0.5 % at most; 32 workgroups on 304 CUs: smaller tiles first"


def test_what_is_not_told_apart_leaves_the_launch_order(amd, nvidia):
    none = advise(nvidia, BY_TIME, attempt(1, 150.0), attempt(2, 160.0), run="runs/x")
    assert none.what == "leave it: no order tried is better"
    assert [shlex.split(one)[1] for one in none.next] == ["report", "optimize"]
    bound = advise_run(amd, HITS, [attempt(0, rate=0.9), attempt(1, rate=0.6), attempt(2, rate=0.5)], "runs/x")
    assert bound.what == "leave it: the launch order's L2 hit rate is the bound"
    worse = advise(nvidia, BY_TIME, attempt(1, 150.0))
    assert (worse.verdict, worse.order) == ("leave", "a1") and "100.0 to 150.0" in worse.why


def test_a_kernel_bound_by_arithmetic_is_left_unless_it_spills_or_the_replays_disagree(amd):
    base, rest = replace(BASE, busy_us={"compute": 95.0}), attempt(1, 98.9, source="pid = num_pids - 1 - pid")
    launch = replace(attempt(0), score=base)
    lock = amd.quick
    gains = score_on(lock, np.arange(1024)[::-1]).l2_hit_rate - lock.baseline.l2_hit_rate
    same = replace(rest, score=replace(rest.score, l2_hit_rate=base.l2_hit_rate + max(gains, 0.01)))
    assert advise_run(amd, HITS, [launch, same]).what == "leave it: a1 gains 1.1 % at most; bound by arithmetic"
    far = replace(rest, score=replace(rest.score, l2_hit_rate=base.l2_hit_rate + gains - 0.2))
    for part in ("compute", "power"):  # which arithmetic takes
        launch = replace(launch, score=replace(base, busy_us={part: 95.0}))
        found = advise_run(amd, HITS, [launch, far])
        assert found.verdict == "measure" and "disagree" in found.why


LONG = "a_family_with_a_long_name(size=16)"


@pytest.mark.parametrize("time_us", [70.0, 95.0, 99.9, 100.0, 130.0])
@pytest.mark.parametrize("name", [LONG, "a text of many words that a model wrote as a name"])
def test_every_answer_is_one_of_three_in_at_most_twenty_words(amd, nvidia, time_us, name):
    prices = (None, priced(140, 1), priced(120, 2))
    every = product((0.2, 0.5, 0.9), prices, (500, 2000))
    rows = [attempt(1, time_us, rate, price=price, read=read, balance=ends(150.0)) for rate, price, read in every]
    for scorer, ranking in ((amd, HITS), (nvidia, BY_TIME)):
        for one in rows:
            found = advise_run(scorer, ranking, [attempt(0, balance=ends(105.0)), replace(one, name=name)])
            assert found.verdict in ("use", "measure", "leave") and found.what.startswith(f"{found.verdict} it: ")
            assert len(found.what.split()) <= 20, found.what


@pytest.mark.parametrize(
    ("name", "busy_us", "said"),
    [
        ("compute", 95.0, "bound by arithmetic: 95.0 of 100.0 µs"),
        ("hbm", 92.0, "bound by HBM: 92.0 of 100.0 µs"),
        ("l2", 40.0, "waits for loads: the L2, the busiest, is busy 40.0 of 100.0 µs"),
    ],
)
def test_the_limit_is_the_resource_that_is_busy_all_the_time(amd, name, busy_us, said):
    assert limit_of(amd, replace(BASE, busy_us={name: busy_us, "mall": 1.0})) == said


def test_the_l1_port_is_named_where_it_is_busier_than_the_rest(amd):
    """GEMM's bf16 panels: a line of 128 B a clock and CU, 2,048 x 2,048 x 1,024 in tiles of 256: 64 of each panel."""
    ports = Scorer(gemm(M=2048, N=2048, K=1024, BLOCK_M=64, BLOCK_N=64), gpu("mi300x"))
    lines = 32 * 32 * 16 * (64 + 64)  # tiles, steps of K, rows of 128 B
    assert ports.l1_us == pytest.approx(lines / 304 / 2100, rel=1e-3)
    for busy, said in ((1.05, "HBM"), (0.5, "the L1 port")):
        score = replace(BASE, time_us=3 * ports.l1_us, busy_us={"hbm": busy * ports.l1_us})
        assert f"waits for loads: {said}, the busiest, is busy" in limit_of(ports, score)


def test_the_limit_of_a_launch_order_that_is_kept_is_its_own(amd):
    """A candidate of fewer hits may be bound by arithmetic: that is no reason why nothing can help the launch order."""
    busy = attempt(1, 60.0, rate=0.1)
    busy = replace(busy, score=replace(busy.score, busy_us={"compute": 59.0}))
    base = replace(BASE, l2_hit_rate=0.8, busy_us={"hbm": 95.0})
    found = advise_run(amd, HITS, [replace(attempt(0), score=base), busy])
    assert found.verdict == "leave" and "bound by HBM: 95.0 of 100.0" in found.limit
    uneven = Scorer(attention(CAUSAL=True), gpu("mi300x"))
    assert limit_of(uneven, replace(BASE, busy_us={"compute": 95.0})) == "bound by arithmetic: 95.0 of 100.0 µs"


def test_uneven_work_and_few_workgroups_are_named(amd):
    waits = replace(amd.baseline, busy_us={"hbm": 1.0})  # below the power limit
    late = limit_of(amd, replace(waits, balance=ends(180.0, first=100.0)))
    assert late == "XCDs end unevenly: the last XCD ends 1.8 times later than the first"
    assert limit_of(amd, replace(waits, balance=ends(135.0))) == (
        "the last round of workgroups leaves CUs idle: the time is 1.35 times what even work would take"
    )  # every workgroup of a GEMM has the same work
    few = Scorer(gemm(M=1024, N=2048, K=256), gpu("mi300x"))
    assert limit_of(few, replace(BASE, busy_us={"compute": 4.0})) == "32 workgroups on 304 CUs: smaller tiles first"
    assert limit_of(amd, BASE) == ""  # a run of an earlier version
    busy = amd.baseline.busy_us
    assert 0 < busy[amd.baseline.limiter] == max(busy.values()) <= amd.baseline.time_us


def test_a_gpu_that_has_no_name_gets_no_command_to_paste(amd):
    other = Scorer(amd.kernel, replace(amd.gpu, name="mi300x[xcds=8]"), replay="lockstep")
    found = advise(other, HITS, attempt(1, 80.0, 0.6), run="runs/x")
    assert found.next == ("swizzle-sim report runs/x --open", "swizzle-sim bundle runs/x") and found.limit == ""


def test_one_xcd_of_a_chip_has_nothing_to_swizzle_over(nvidia):
    cpx = Scorer(gemm(M=1024, N=1024, K=256, BLOCK_M=128, BLOCK_N=128), gpu("mi308x-cpx"))
    said = "mi308x-cpx is one XCD with one L2: nothing to swizzle over XCDs"
    ranking = Ranking(gpu="mi308x-cpx")
    assert said in advise(cpx, ranking, attempt(1, 80.0, 0.6)).why  # an order that gains in its one L2
    assert said in advise(cpx, ranking, attempt(1, 100.0)).why
    assert "one XCD" not in advise(nvidia, BY_TIME, attempt(1, 80.0)).why  # which has no XCDs
