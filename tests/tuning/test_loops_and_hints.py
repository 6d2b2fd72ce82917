"""Do loop directions and streamed loads do in source, replay and command what is said of them?"""

import dataclasses
import textwrap
from pathlib import Path

import numpy as np
import pytest

from swizzle_sim.capture.capture import capture_all
from swizzle_sim.pricing.knobs import Knobs, periods
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.search.jobs import PointStore
from swizzle_sim.search.ranking import OBJECTIVES
from swizzle_sim.tuning.answer import Answer
from swizzle_sim.tuning.joint import tune
from swizzle_sim.tuning.levers import Levers
from swizzle_sim.tuning.loops import argument_names, emit_knobs, loops_of
from swizzle_sim.tuning.template import Template
from swizzle_sim.workload.kernels import kernel
from tests.capture.same_trace import assert_equal_traces, needs_triton
from xcd_model import gpu
from xcd_model.errors import RewriteError
from xcd_model.replay.knobs import instructions_walked

CASES = {
    "gemm": {"M": 100, "N": 130, "K": 200, "BLOCK_M": 32, "BLOCK_N": 32, "BLOCK_K": 32},
    "attention": {"S": 300, "H": 2, "D": 32, "CAUSAL": 1, "BLOCK_M": 64, "BLOCK_N": 32},
    "conv_2d": {"N": 1, "H": 9, "W": 9, "C": 48, "K": 32, "BLOCK_C": 16, "BLOCK_K": 16},
    "attention_decode": {"B": 2, "H": 4, "HKV": 2, "S": 64, "D": 32, "SPLITS": 2, "BLOCK_N": 16},
}


def emitted(work, knobs, arch="gfx942"):
    trace = work.build_trace(128)
    return emit_knobs(
        work.triton_source,
        work.launch.function,
        knobs,
        arguments=argument_names(trace, work.launch),
        axes=len(work.launch.grid),
        arch=arch,
        path=work.launch.path,
    )


@needs_triton
def test_the_emitted_loop_is_the_one_that_is_replayed(tmp_path):
    launches, wanted = [], []
    for name, sizes in CASES.items():
        work, knobs = kernel(name, **sizes), Knobs(period=3)
        path = tmp_path / f"{name}_loop.py"
        path.write_text(emitted(work, knobs))
        launches.append(dataclasses.replace(work.launch, path=path))
        trace = work.build_trace(128)
        order = instructions_walked(trace, knobs.backwards(np.arange(trace.n_workgroups)))
        assert (order != np.arange(order.size)).any(), name
        turned = {"base": trace.base[order], "template": trace.template[order], "trip": trace.trip[order]}
        wanted.append(dataclasses.replace(trace, **turned))
    for launch, trace, found in zip(launches, wanted, capture_all(launches, line_bytes=128), strict=True):
        assert_equal_traces(trace, found.trace, launch.path.stem)


def test_loads_of_the_named_tensors_alone_stream_as_the_gpu_wants_it():
    work = kernel("gemm")
    for arch, words in (("gfx950", 'cache_modifier=".cs"'), ("sm_90a", 'eviction_policy="evict_first"')):
        before, after = work.triton_source.splitlines(), emitted(work, Knobs(streamed=("B",)), arch).splitlines()
        changed = [(a, b) for a, b in zip(before, after, strict=True) if a != b]
        assert [b for _, b in changed] == [f"{changed[0][0][:-1]}, {words})"]
        assert "b_ptr" in changed[0][0]
    assert emitted(work, Knobs()) == work.triton_source


def refused(body, knobs, **arguments):
    text = "import triton\nimport triton.language as tl\n\n@triton.jit\ndef k(a_ptr, b_ptr, N, B: tl.constexpr):\n"
    text += textwrap.indent(textwrap.dedent(body), "    ")
    names = arguments or {"a": "a_ptr", "b": "b_ptr"}
    return emit_knobs(text, "k", knobs, arguments=names, axes=1, arch="gfx942", path=Path("k.py"))


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("x = tl.load(a_ptr)\n", "k has no loop"),
        ("i = 0\nwhile i < N:\n    i += 1\n", "line 7: the loop is no plain range"),
        ("for i in tl.static_range(0, B):\n    tl.load(a_ptr + i)\n", "line 6: the loop is no plain range"),
        (
            "for i in range(N):\n    tl.load(a_ptr + i)\nfor i in range(N):\n    pass\n",
            "stands beside the one of line 6",
        ),
        ("p = a_ptr\nfor i in range(N):\n    tl.load(p)\n    p += B\n", "line 8: p is carried from trip to trip"),
        ("p = 0\nfor i in range(N):\n    q = a_ptr + p\n    tl.load(q)\n    p = p + 1\n", "q is carried"),
    ],
)
def test_a_loop_that_cannot_be_turned_is_refused_by_name(body, said):
    with pytest.raises(RewriteError, match=said):
        refused(body, Knobs(period=1))


def test_a_load_that_cannot_stream_is_refused_by_name():
    with pytest.raises(RewriteError, match="line 6: the load of a_ptr has a cache policy of its own"):
        refused('x = tl.load(a_ptr, cache_modifier=".cg")\n', Knobs(streamed=("a",)))
    with pytest.raises(RewriteError, match=r"k has no tl\.load of b_ptr to stream"):
        refused("p = tl.load(b_ptr_of)\nx = tl.load(a_ptr + p)\n", Knobs(streamed=("b",)))
    moved = refused("p = a_ptr + 3\nx = tl.load(p)\ny = tl.load(b_ptr + x)\n", Knobs(streamed=("a",)))
    assert moved.count("cache_modifier") == 1 and "tl.load(p, cache_modifier" in moved


def test_a_value_that_is_carried_is_no_address():
    body = "acc = 0.0\nfor i in range(1, N, 4):\n    acc += tl.load(a_ptr + i)\ntl.store(b_ptr, acc)\n"
    text = refused(body, Knobs(period=2))
    assert "i = tl.where(walks_back, 2 * (1) + (tl.cdiv((N) - (1), 4) - 1) * (4) - i_forward, i_forward)" in text
    assert "walks_back = (tl.program_id(0)) // 2 % 2 == 1" in text


def test_periods_are_workgroups_xcds_and_rounds():
    assert periods(gpu("mi300x"), 2, 1000) == (1, 8, 608)
    assert periods(gpu("mi300x"), 2, 608) == (1, 8)
    assert periods(gpu("gb10"), 3, 1000) == (1, 144)


def tuned(work, device, levers, evaluations, objective="time"):
    """Answer of a search without a compile."""
    found = Levers(Template(work, device, compile=False), OBJECTIVES[objective], "timed")
    return Answer(tune(found, levers, PointStore(None), evaluations=evaluations))


# ---- Does a search of the loop's direction find what pays, and is it written down?
SIZES = ("S=2048", "H=4", "D=64", "BLOCK_M=64")


def small_l2():
    """A GB10 whose L2 holds three quarters of the keys and values of one head."""
    device = gpu("gb10")
    l2 = dataclasses.replace(device.l2, size_bytes=12 * 128 * 256)
    return dataclasses.replace(device, cus_per_xcd=2, l2=l2)


def test_a_sawtooth_over_the_keys_is_found_where_they_do_not_fit():
    work, device = kernel("attention", S=2048, H=4, D=64, BLOCK_M=64), small_l2()
    found = tuned(work, device, ("loop", "hints"), 6, "hbm_bytes")
    best, launched = found.chosen, found.tuned.base
    assert best.values["period"] > 0 and found.lever in ("loop", "both")
    assert best.score.l2_misses < 0.75 * launched.score.l2_misses
    scorer = Scorer(work, device).with_knobs(found.tuned.levers.knobs(best.values))
    again = scorer.score_order(np.arange(work.grid.num_pids), baseline_us=None)
    assert (again.l2_misses, again.time_us) == (best.score.l2_misses, best.score.time_us)


def test_knobs_that_the_source_does_not_take_are_named():
    walks, _, refused = loops_of(kernel("layer_norm"), gpu("mi300x"), 1)
    assert walks == (0,) and "trips of a loop" in refused["loop"]
    assert "loop" in loops_of(kernel("gemm_streamk"), gpu("mi300x"), 1)[2]
    captured = dataclasses.replace(kernel("gemm"), make_launch=None)
    assert "no Triton source" in loops_of(captured, gpu("mi300x"), 1)[2]["hints"]
    assert str(Knobs(8, ("K",))) == "back every 8, K streamed" and str(Knobs()) == "forward"


@needs_triton
def test_the_command_writes_the_source_and_compares_it(typed, tmp_path):
    out = tmp_path / "run"
    words = ("optimize", "attention", *SIZES, "--gpu", "gb10", "--tune", "loop", "--evaluations", "4", "--no-compile")
    found = typed(*words, "--objective", "l2_hit_rate", "-o", str(out), "--json").json
    assert found["kind"] == "simulated" and list(found["levers"]) == ["loop"]
    if found["lever"]:
        assert "walks_back" in (out / "attention_triton_tuned.py").read_text()
        assert found["written"]["compared"]["cases"]
    assert "not apply to --tune" in typed(*words, "--template", "row").err
