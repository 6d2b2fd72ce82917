"""Are ranges those of replays made one by one, do common shifts cancel, and is nothing replayed twice?"""

import dataclasses
import json

import numpy as np
import pytest
from typer.testing import CliRunner

from swizzle_sim.base import disk_cache
from swizzle_sim.cli.app import app
from swizzle_sim.language import Swizzle, family
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.report.rank_stability import Finalist, compare_finalists, stability_lines
from swizzle_sim.uncertainty import perturbed_scorer
from swizzle_sim.uncertainty.constants import (
    NO_RANGE,
    RATE_ENDS,
    RATES,
    Constant,
    constants_of,
    drawn_constants,
    held_facts,
    latin_hypercube,
    latin_hypercube_settings,
    one_at_a_time,
)
from swizzle_sim.uncertainty.perturbed_scorer import digest_of, low_bit_rows, perturbed, perturbed_gpu, random_rows
from swizzle_sim.uncertainty.study import span_of, uncertainty
from swizzle_sim.workload.kernels import kernel
from xcd_model import gpu, gpu_names
from xcd_model.compiled.source import source_digest
from xcd_model.errors import ReplayError
from xcd_model.spec.facts import Fact

SIZES = {"M": 1024, "N": 1024, "K": 256, "BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 64}
TYPED = [f"{name}={size}" for name, size in SIZES.items()]


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "kept"))


def scorer_of(replay="lockstep", **changes):
    """A GEMM that a few CUs work through in rounds, with L2s that its panels do not fit, so that capacity matters."""
    device = gpu("mi300x")
    l2 = dataclasses.replace(device.l2, size_bytes=device.l2.size_bytes // 16)
    small = {"l2": l2, "cus_per_xcd": 3, **changes}
    return Scorer(kernel("gemm", **SIZES), dataclasses.replace(device, **small), replay=replay)


def order_of(scorer, name):
    return scorer.permutation(Swizzle.parse(family(name)))


@pytest.mark.parametrize("replay", ["lockstep", "timed"])
def test_ends_are_those_of_a_gpu_described_so(replay):
    """Each effect is replayed again here from a description changed by hand."""
    scorer = scorer_of(replay)
    order = order_of(scorer, "contiguous")
    found = uncertainty(scorer, order, draws=2, threads=1)
    device = scorer.gpu
    by_hand = {
        ("l2.ways", 12): {"l2": dataclasses.replace(device.l2, ways=12, size_bytes=device.l2.size_bytes * 3 // 4)},
        ("hbm.latency_ns", 347.0 * 0.95): {"hbm": dataclasses.replace(device.hbm, latency_ns=347.0 * 0.95)},
        ("peak_tflops", 0.7): {"peak_tflops": {name: value * 0.7 for name, value in device.peak_tflops.items()}},
    }
    for (key, setting), changes in by_hand.items():
        other = Scorer(scorer.kernel, dataclasses.replace(device, **changes), replay=replay)
        entry = next(one for one in found.effects[key] if one["setting"] == pytest.approx(setting))
        for name, permutation in (("baseline", np.arange(order.size)), ("candidate", order)):
            traffic = other.traffic(permutation)
            assert entry[name]["l2_hit_rate"] == traffic.l2_hit_rate
            assert entry[name]["hbm_bytes"] == traffic.hbm_read_bytes + traffic.hbm_write_bytes
            assert entry[name]["time_us"] == other.time(traffic).total_us
    every = [one["candidate"]["time_us"] for effect in found.effects.values() for one in effect]
    span = found.candidate["time_us"]
    assert span.low <= min(every) and span.high >= max(every) and span.low < span.value < span.high
    rates = found.candidate["l2_hit_rate"]
    assert rates.low < rates.high and rates.moved_by == "l1.ways"  # halved L1s ask for lines that the L2 has


ATTENTION = {"B": 1, "H": 4, "S": 512, "D": 64, "CAUSAL": 0, "BLOCK_M": 64, "BLOCK_N": 64}


@pytest.mark.parametrize(
    "scorer",
    [
        scorer_of(),
        Scorer(kernel("gemm", **SIZES), gpu("h200"), replay="lockstep"),
        Scorer(kernel("attention", **ATTENTION), gpu("mi300x"), replay="lockstep"),
    ],
    ids=["gemm", "h200", "attention"],
)
def test_in_lockstep_rates_change_no_count(scorer):
    """What lets draws share a replay: were it untrue, ranges would be wrong."""
    order = order_of(scorer, "contiguous")
    nominal = scorer.traffic(order)
    rates = [one for one in drawn_constants(scorer) if one.key in RATES or one.key.endswith(RATE_ENDS)]
    assert len(rates) >= 10
    for constant in rates:
        for end in constant.ends():
            assert perturbed(scorer, {constant.key: end}).traffic(order).per_xcd.tolist() == nominal.per_xcd.tolist()


def test_overlap_of_matrix_and_vector_units_is_drawn_only_for_kernels_with_vector_work():
    drawn = {
        one.key for one in drawn_constants(Scorer(kernel("attention", **ATTENTION), gpu("mi300x"), replay="lockstep"))
    }
    assert "limits.matrix_beside_vector" in drawn - {one.key for one in drawn_constants(scorer_of())}


def test_an_order_held_against_itself_differs_in_nothing():
    scorer = scorer_of("timed")
    found = uncertainty(scorer, np.arange(256), draws=3)
    assert found.candidate["time_us"].low < found.candidate["time_us"].high
    assert (found.difference["l2_hit_rate"].low, found.difference["l2_hit_rate"].high) == (0, 0)
    assert (found.difference["speedup"].low, found.difference["speedup"].high) == (1, 1)
    assert found.ahead[0] == 0 and found.difference["speedup"].moved_by == ""
    with pytest.raises(ReplayError, match="at least 2"):
        uncertainty(scorer, np.arange(256), draws=1)


def test_nothing_is_replayed_twice_and_an_interrupt_keeps_what_is_done():
    order = order_of(scorer_of(), "contiguous")

    def stop(done, total):
        if done >= total // 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        uncertainty(scorer_of(), order, draws=4, threads=1, on_replay=stop)
    rest = uncertainty(scorer_of(), order, draws=4, threads=1)
    cached = uncertainty(scorer_of(), order, draws=4)
    assert cached.replays == 0 < rest.replays
    assert {**cached.as_dict(), "replays": 0} == {**rest.as_dict(), "replays": 0}
    assert uncertainty(scorer_of(xcds=4), order, draws=4).replays > rest.replays  # another GPU is another study


def test_a_change_of_code_at_any_depth_is_another_key(tmp_path, monkeypatch):
    file = tmp_path / "package" / "folder" / "deep" / "module.py"
    file.parent.mkdir(parents=True)
    monkeypatch.setattr(perturbed_scorer, "EXPERIMENT", tmp_path / "package")
    monkeypatch.setattr(disk_cache, "_digest_once", source_digest)
    order = np.arange(256)
    file.write_text("FACTOR = 1")
    first = digest_of(scorer_of(), order)
    assert digest_of(scorer_of(), order) == first
    file.write_text("FACTOR = 2")
    assert digest_of(scorer_of(), order) != first


def test_threads_change_nothing(tmp_path, monkeypatch):
    order = order_of(scorer_of("timed"), "contiguous")
    one = uncertainty(scorer_of("timed"), order, draws=3, threads=1)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "empty"))
    two = uncertainty(scorer_of("timed"), order, draws=3, threads=2)
    assert two.as_dict() == one.as_dict() and two.replays > 0


def test_a_span_names_what_moves_it_furthest():
    values = [5.0, 4.0, 6.0, 5.0, 9.0, 1.0]
    found = span_of("x", [{"x": value} for value in values], ["small", "small", "none", "large"])
    assert (found.value, found.low, found.high) == (5, 1, 9)
    assert (found.moved_by, found.moved_low, found.moved_high) == ("large", 5, 9)
    still = span_of("x", [{"x": 3.0}] * 4, ["a", "b"])
    assert (still.moved_by, still.low, still.high) == ("", 3, 3)
    assert span_of("x", [{"x": None}, {"x": 1.0}], ["a"]).value is None


def test_relabelled_xcds_are_equal_and_a_worse_order_is_stably_worse():
    """Turning the ids within each round over the XCDs by one gives every XCD's work to its neighbour."""
    scorer = scorer_of()
    best = order_of(scorer, "contiguous+group_m(size=4)")
    turned = best.reshape(-1, 8)[:, np.roll(np.arange(8), 1)].reshape(-1)
    scattered = np.random.default_rng(0).permutation(best.size)
    finalists = [Finalist("best", best), Finalist("turned", turned), Finalist("scattered", scattered)]
    found = compare_finalists(scorer, finalists)
    (same, worse) = found["pairs"]
    assert (same["apart"], same["value"], same["low"], same["high"]) == (False, 0, 0, 0)
    assert worse["apart"] and 0 < worse["low"] <= worse["value"] <= worse["high"]
    assert "l2.ways" in found["constants"] and "hbm.latency_ns" not in found["constants"]


@pytest.mark.parametrize("replay", ["lockstep", "timed"])
@pytest.mark.parametrize("of", ["l2_hit_rate", "time", "hbm_bytes"])
def test_finalists_with_the_scores_of_a_search_are_compared_as_those_replayed_once_more(replay, of):
    scorer = scorer_of(replay)
    orders = {name: order_of(scorer, name) for name in ("contiguous+group_m(size=4)", "identity")}
    plain = [Finalist(name, order) for name, order in orders.items()]
    scored = [Finalist(one.name, one.order, scorer.score_order(one.order, baseline_us=1.0)) for one in plain]
    counts = []
    first = compare_finalists(scorer, scored, of=of, draws=2, on_replay=lambda *count: counts.append(count))
    assert counts[-1] == (2, 2)  # nothing was there before, and the constants in use are not replayed
    assert first == compare_finalists(scorer, plain, of=of, draws=2)
    assert first == compare_finalists(scorer, [scored[0], plain[1]], of=of, draws=2)


def test_score_prints_ranges():
    run = CliRunner()
    words = ["score", "gemm", *TYPED, "--swizzle", "contiguous", "--uncertainty", "--draws", "2"]
    shown = run.invoke(app, words)
    assert shown.exit_code == 0, shown.output
    assert "over the plausible constants" in shown.stdout and "moved most by" in shown.stdout
    document = json.loads(run.invoke(app, [*words, "--json"]).stdout)["uncertainty"]
    assert document["replays"] == 0 and document["draws"] == 2
    for name, span in document["candidate"].items():
        assert span["value"] is None or span["low"] <= span["value"] <= span["high"], name
    assert all(one["reason"] for one in document["constants"]) and all(document["held"].values())
    plain = json.loads(run.invoke(app, [*words[:-3], "--json"]).stdout)
    assert plain["uncertainty"] is None
    refused = run.invoke(app, [*words[:-3], "--draws", "4"])
    assert isinstance(refused.exception, ReplayError)


# ---- Has every assumed constant a range with a reason, and can every value in it be replayed?
SMALL = dataclasses.replace(kernel("gemm").resources, threads=256, vgprs=100, lds_bytes=20_000)


@pytest.mark.parametrize("name", gpu_names())
def test_nothing_assumed_is_silently_exact(name):
    """A new constant without a range fails here: give it one in ranges.toml, or the reason why it has none."""
    device = gpu(name)
    held = held_facts(device)
    assert [key for key, why in held.items() if why == NO_RANGE] == []
    varied = {one.key for one in constants_of(device, SMALL)}
    for key, fact in device.facts.items():
        if fact.status != "documented" and key not in held:
            assert key in varied or device.facts[key].value == 0, key


@pytest.mark.parametrize("name", gpu_names())
def test_every_range_holds_the_value_in_use_and_can_be_replayed(name):
    device = gpu(name)
    for constant in constants_of(device, SMALL):
        assert constant.reason
        if constant.low is not None:
            assert constant.low <= constant.value <= constant.high, constant
        else:
            assert constant.choices and constant.value not in constant.choices
        for end in constant.ends():
            other = perturbed_gpu(device, {constant.key: end})
            if constant.status != "run":
                assert other != device, constant
                assert other.l2.sets == device.l2.sets and other.l2.line_bytes == device.l2.line_bytes


def test_the_status_of_a_fact_decides_its_range():
    device = gpu("mi300x")
    facts = dict(device.facts)
    facts["hbm.latency_ns"] = Fact(value=347.0, status="assumed", source="a guess")
    facts["l2.index"] = Fact(value="channel-fold", status="documented", source="a manual")
    told = dataclasses.replace(device, facts=facts)
    before, after = ({one.key: one for one in constants_of(each, SMALL)} for each in (device, told))
    assert after["hbm.latency_ns"].high > before["hbm.latency_ns"].high
    assert "l2.index" in before and "l2.index" not in after


def test_a_fact_of_a_new_key_is_named_as_taken_exactly():
    device = gpu("mi300x")
    facts = {**device.facts, "l2.queue_depth": Fact(value=3, status="assumed", source="a guess")}
    assert held_facts(dataclasses.replace(device, facts=facts))["l2.queue_depth"] == NO_RANGE


def test_occupancy_varies_with_registers_only_where_that_changes_it():
    """512 registers a SIMD: 4 waves of 100 (104) fit 4 times, of 85 (88) 5 times, of 115 (120) 4 times."""
    found = {one.key: one for one in constants_of(gpu("mi300x"), dataclasses.replace(SMALL, lds_bytes=0))}
    assert (found["workgroups_per_cu"].value, found["workgroups_per_cu"].choices) == (4, (5,))
    once = dataclasses.replace(SMALL, lds_bytes=0, vgprs=400)  # 340 to 460 fit once as well
    assert "workgroups_per_cu" not in {one.key for one in constants_of(gpu("mi300x"), once)}


def test_the_matrix_rate_and_the_clock_move_what_belongs_to_them():
    device = gpu("mi300x")
    assert perturbed_gpu(device, {"peak_tflops": 0.5}).peak_tflops["fp16"] == device.peak_tflops["fp16"] / 2
    slow = perturbed_gpu(device, {"clock_mhz": 1365.0})
    assert (slow.clock_mhz, slow.sustained_clock_mhz) == (1365.0, 1365.0)
    assert slow.peak_tflops["fp16"] == pytest.approx(0.65 * device.peak_tflops["fp16"])
    assert perturbed_gpu(device, {}) == device
    small = perturbed_gpu(device, {"l2.ways": 12})
    assert small.l2.size_bytes == device.l2.size_bytes * 12 // 16


def test_drawn_hashes_and_those_of_low_bits_differ_by_seed_and_lose_no_line():
    cache = gpu("mi300x").l2
    for draw in (random_rows, low_bit_rows):
        assert draw(cache, 1) == draw(cache, 1) != draw(cache, 2)
    assert [row // cache.line_bytes % cache.sets for row in random_rows(cache, 1)] == [1 << bit for bit in range(11)]
    rows = low_bit_rows(cache, 1)
    assert rows[:4] == (1 << 8, 1 << 9, 1 << 10, 1 << 11 | 1 << 13) and len(rows) == 11
    other = perturbed_gpu(gpu("mi300x"), {"l2.index": "low-bits 1"}).l2  # the cache refuses rows that lose a line
    assert (other.index, other.index_rows) == ("xor", rows)


def test_the_hypercube_takes_every_part_of_every_range_once():
    points = latin_hypercube(9, 5, seed=3)
    assert points.shape == (9, 5) and points.min() >= 0 and points.max() < 1
    assert (np.sort((points * 9).astype(int), axis=0) == np.arange(9)[:, None]).all()
    assert np.array_equal(points, latin_hypercube(9, 5, seed=3))
    assert not np.array_equal(points, latin_hypercube(9, 5, seed=4))


def test_draws_cover_both_ends_and_every_choice():
    width = Constant(key="a", status="assumed", value=10.0, low=5.0, high=15.0, reason="-")
    ways = Constant(key="b", status="assumed", value=16, low=12.0, high=16.0, reason="-")
    index = Constant(key="c", status="assumed", value="x", choices=("y", "z"), reason="-")
    every = [width, ways, index]
    assert list(one_at_a_time(every)) == [
        ("a", {"a": 5.0}),
        ("a", {"a": 15.0}),
        ("b", {"b": 12}),
        ("c", {"c": "y"}),
        ("c", {"c": "z"}),
    ]
    drawn = latin_hypercube_settings(every, 12, seed=0)
    assert all(5 <= one["a"] < 15 and isinstance(one["b"], int) and 12 <= one["b"] <= 16 for one in drawn)
    assert [sum(one["c"] == choice for one in drawn) for choice in "xyz"] == [4, 4, 4]
    assert drawn == latin_hypercube_settings(every, 12, seed=0) != latin_hypercube_settings(every, 12, seed=1)


# ---- Does ``optimize`` say which finalists it cannot tell apart, and store it?
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
    (longer, _) = stability_lines({**found, "of": "time", "pairs": [pair("e", 0.0, 0.5)]})
    assert longer == "a ties with: e (+0.00 to +64.87 %)", "of the logarithm of two times"


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
