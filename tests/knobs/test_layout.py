"""Does ``optimize --tune layout`` pad what a launch can, replay the kernel with those strides, and say what to do?"""

import dataclasses

import pytest

from swizzle_sim.search.strategies.settings import Padding, paddings_of, tune
from swizzle_sim.workload.kernels import kernel
from swizzle_sim.workload.launch import Array
from tests.capture.same_trace import assert_same_trace, needs_triton
from xcd_model import gpu
from xcd_model.errors import SearchError

SMALL = {"M": 256, "N": 256, "K": 128, "BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 64}
TYPED = ("optimize", "gemm", *(f"{name}={value}" for name, value in SMALL.items()), "--tune", "layout", "--no-compile")


def test_rows_of_the_matrices_whose_stride_is_an_argument_are_made_longer():
    found, refused = paddings_of(kernel("gemm", **SMALL), gpu("mi300x"))
    assert found[0] == Padding() and not refused
    assert [(one.tensor, one.stride, one.items, one.more_items) for one in found[1:]] == [
        *(("A", "stride_am", 128, more) for more in (64, 128, 256)),
        *(("B", "stride_bk", 256, more) for more in (64, 128, 256)),
        *(("C", "stride_cm", 256, more) for more in (64, 128, 256)),
    ]
    assert found[4].instruction == "allocate b_ptr with rows of 320 items instead of 256, and pass stride_bk=320"


@needs_triton
def test_a_padded_launch_is_captured_as_the_padded_trace():
    work = kernel("gemm", **SMALL)
    assert_same_trace(*(one.on(work) for one in paddings_of(work, gpu("mi300x"))[0]))


def test_what_a_launch_cannot_choose_is_named_with_the_reason():
    with pytest.raises(SearchError, match=r"x: no argument stride_x\.\.\. is its leading dimension 512"):
        tune("layout", kernel("softmax", M=64, N=512), gpu("mi300x"))
    odd = paddings_of(kernel("gemm", **{**SMALL, "N": 200}), gpu("mi300x"))[1]
    assert odd == dict.fromkeys("BC", "its rows of 400 B are no whole lines of 128 B")
    work = kernel("gemm", **SMALL)
    launch = work.launch
    turned = launch.arguments | {"b_ptr": Array(shape=(128, 256), dtype="fp16", strides=(1, 128))}
    columns = dataclasses.replace(work, make_launch=lambda: dataclasses.replace(launch, arguments=turned))
    assert paddings_of(columns, gpu("mi300x"))[1] == {"B": "no matrix stored row by row"}
    with pytest.raises(SearchError, match="gemm has no Triton launch"):
        paddings_of(dataclasses.replace(work, make_launch=None), gpu("mi300x"))


def test_of_equals_the_launch_as_it_is_wins():
    found = tune("layout", kernel("gemm", **SMALL), gpu("mi300x"), evaluations=10)
    ranked = found.ranked
    assert found.tried == 10 and ranked[0].what == Padding() and ranked[0].what.instruction.startswith("leave")
    assert all(one.timed for one in ranked) and sum(one.what == Padding() for one in ranked) == 1


def test_the_command_says_what_the_launch_has_to_do(typed):
    found = typed(*TYPED, "--evaluations", "10", "--json").json
    assert (found["kind"], found["evaluations"], found["refused"]) == ("simulated", 10, {})
    assert {"swizzle", "padding", "lockstep", "timed"} == set(found["ranked"][0])
    assert "best: leave the layout as it is" in typed(*TYPED, "--evaluations", "10").out
    assert "changes no source: leave --replay and --out out" in typed(*TYPED, "-o", "run").err
    assert "--sampler does not apply to --tune layout" in typed(*TYPED, "--sampler", "tpe").err
