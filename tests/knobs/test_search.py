"""Does ``optimize --tune loop`` find what pays, judge it by both replays, and write it down?"""

import dataclasses

import numpy as np
import pytest

from swizzle_sim.pricing.knobs import DEFAULT, Knobs
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.search.strategies.settings import loops_of, tune
from swizzle_sim.workload.kernels import kernel
from xcd_model import gpu
from xcd_model.errors import SearchError

SIZES = ("S=2048", "H=4", "D=64", "BLOCK_M=64")


def small_l2():
    """A GB10 whose L2 holds three quarters of the keys and values of one head."""
    device = gpu("gb10")
    l2 = dataclasses.replace(device.l2, size_bytes=12 * 128 * 256)
    return dataclasses.replace(device, cus_per_xcd=2, l2=l2)


def test_a_sawtooth_over_the_keys_is_found_where_they_do_not_fit():
    work, device = kernel("attention", S=2048, H=4, D=64, BLOCK_M=64), small_l2()
    found = tune("loop", work, device, evaluations=12)
    best, launched = found.ranked[0], next(one for one in found.ranked if one.what == DEFAULT)
    assert best.what.period > 0
    for replay in ("lockstep", "timed"):
        assert getattr(best, replay).l2_misses < 0.75 * getattr(launched, replay).l2_misses
    scorer = Scorer(work, device).with_knobs(best.what)
    order = np.arange(work.grid.num_pids)
    again = scorer.score_order(order, baseline_us=None)
    assert (again.l2_misses, again.time_us) == (best.timed.l2_misses, best.timed.time_us)


def test_knobs_that_the_source_does_not_take_are_named():
    settings, refused = loops_of(kernel("layer_norm"), gpu("mi300x"), 1)
    assert {one.period for one in settings} == {0} and "trips of a loop" in refused["direction"]
    streamk, why = loops_of(kernel("gemm_streamk"), gpu("mi300x"), 1)
    assert DEFAULT in streamk and "direction" in why
    captured = dataclasses.replace(kernel("gemm"), make_launch=None)
    with pytest.raises(SearchError, match="has no Triton source"):
        loops_of(captured, gpu("mi300x"), 1)
    assert str(Knobs(8, ("K",))) == "back every 8, K streamed" and str(DEFAULT) == "forward"


def test_the_command_prints_both_replays_and_writes_the_source(typed, tmp_path):
    out = tmp_path / "run"
    words = ("optimize", "attention", *SIZES, "--gpu", "gb10", "--tune", "loop", "--evaluations", "8", "--no-compile")
    found = typed(*words, "-o", str(out), "--json").json
    assert found["kind"] == "simulated" and found["written"].endswith("attention_triton_loop.py")
    assert {"swizzle", "period", "streamed", "lockstep", "timed"} == set(found["ranked"][0])
    compile((out / "attention_triton_loop.py").read_text(), "loop", "exec")
    assert "lockstep" in typed(*words).out
    assert "leave --replay out" in typed(*words, "--replay", "lockstep").err
    assert "--sampler does not apply to --tune loop" in typed(*words, "--sampler", "tpe").err
