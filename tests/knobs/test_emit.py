"""Does the source with its knobs set touch what the replay counts, in that order, and compute what it did?"""

import dataclasses
import textwrap
from pathlib import Path

import numpy as np
import pytest

from swizzle_sim.capture.capture import capture_all
from swizzle_sim.pricing.knobs import Knobs, argument_names, emit_knobs, periods
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
