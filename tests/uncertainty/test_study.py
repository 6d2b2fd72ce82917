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
from swizzle_sim.report.rank_stability import Finalist, compare_finalists
from swizzle_sim.uncertainty import perturbed_scorer
from swizzle_sim.uncertainty.constants import RATE_ENDS, RATES, drawn_constants
from swizzle_sim.uncertainty.perturbed_scorer import digest_of, perturbed
from swizzle_sim.uncertainty.study import span_of, uncertainty
from swizzle_sim.workload.kernels import kernel
from xcd_model import gpu
from xcd_model.compiled.source import source_digest
from xcd_model.errors import ReplayError

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
