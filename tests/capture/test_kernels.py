"""Does following a kernel give what interpreting every workgroup of it gives, and is the rest refused by its line?"""

from itertools import zip_longest
from pathlib import Path

import pytest

from swizzle_sim.capture.capture import capture_all, capture_each
from swizzle_sim.capture.user_kernel import load
from swizzle_sim.workload.kernels import kernel
from swizzle_sim.workload.launch import Array
from tests.capture.same_trace import assert_equal_traces, needs_triton
from xcd_model.errors import SizeError

pytestmark = needs_triton
pytest.importorskip("triton")

from tests.capture.kernels import constructs, hard, matmul, refused, softmax, transposed  # noqa: E402

ONLY_FULL = ("float_address", "own_index")
SPARSE = kernel("spmv", M=60, N=500, NNZ_PER_ROW=15, BLOCK_SIZE=16).launch


def causal(**sizes):
    """Attention of the suite, whose query blocks have steps up to the diagonal."""
    return kernel("attention", B=1, D=64, CAUSAL=1, BLOCK_M=64, BLOCK_N=32, **sizes).launch


def test_every_workgroup_of_every_kernel_is_as_interpreted():
    launches = [
        matmul.kernel.at(),
        matmul.kernel.at(M=64, N=33, K=31, GROUP_M=3),
        softmax.kernel.at(ROWS=20, COLS=130, PROGRAMS=7),
        softmax.kernel.at(ROWS=2, COLS=1),
        kernel("layer_norm", M=5, N=600).launch,
        causal(S=130, H=2),
        SPARSE,
        hard.descriptors.at(),
        hard.threed.at(),
        hard.atomics.at(),
        hard.steps.at(M=50, N=70, K=40, PROGRAMS=4),
        hard.experts.at(),
        hard.flags.at(),
    ]
    followed, interpreted = capture_all(launches), capture_all(launches, full=True)
    for launch, ours, real in zip(launches, followed, interpreted, strict=True):
        assert (ours.how, real.how) == ("followed", "interpreted")
        assert_equal_traces(ours.trace, real.trace, launch.function)


def test_a_transposed_operand_is_the_same_trace_however_its_tile_is_spelled():
    """Lanes follow the contiguous axis, K, as compiled (`test_compiled_loads`): requests are those of whole lines."""
    spelled = capture_all([transposed.as_rows.at(), transposed.as_columns.at()])
    assert_equal_traces(spelled[0].trace, spelled[1].trace, "linear")
    assert spelled[1].trace.wave_requests.max() == 1
    (real,) = capture_all([transposed.as_columns.at(M=64, N=100, K=40)], full=True)
    (ours,) = capture_all([transposed.as_rows.at(M=64, N=100, K=40)])
    assert_equal_traces(ours.trace, real.trace, "linear, interpreted")


def test_workgroups_that_part_take_paths_of_their_own():
    found = capture_all([causal(S=330, H=3), hard.steps.at(), hard.threed.at(), matmul.kernel.at()])
    assert [one.n_paths for one in found] == [6, 2, 2, 1]


def marked_line(name):
    text = Path(refused.__file__).read_text(encoding="utf-8").splitlines()
    return next(i for i, line in enumerate(text, 1) if line.endswith(f"# {name}"))


def test_what_cannot_be_followed_is_refused_by_its_line():
    errors = capture_each([one.at() for one in refused.kernels.values()])
    for name, error in zip(refused.kernels, errors, strict=True):
        assert str(error).startswith(f"refused.py:{marked_line(name)}: "), name
        assert error.code == {"too_far": "capture", "raises": "kernel-raised"}.get(name, "not-followed")


def test_full_interpretation_follows_what_is_refused():
    found = capture_all([refused.kernels[name].at() for name in ONLY_FULL], full=True)
    assert [one.trace.n_workgroups for one in found] == [40] * 2
    by_hand = {i: (2 * i) % 40 for i in range(40)}  # float_address stores at twice the float it loads
    trace = found[0].trace
    for workgroup, at in by_hand.items():
        store = int(trace.start[workgroup]) + 1
        first = int(trace.rel_start[trace.template[store]])
        line = int(trace.base[store] + trace.rel[first]) - trace.tensors[1].base_line
        assert (line, int(trace.sectors[first])) == (4 * at // 128, 1 << (4 * at % 128 // 32))


def test_full_interpretation_refuses_what_is_wrong():
    names = ("too_far", "raises")
    for name, error in zip(names, capture_each([refused.kernels[name].at() for name in names], full=True), strict=True):
        assert str(error).startswith(f"refused.py:{marked_line(name)}: ")


def changed(launch, **change):
    return launch.__class__(**{**vars(launch), **change})


def test_index_tensors_have_to_be_given_as_declared():
    made = SPARSE.make_inputs(0)
    column = made["indices_ptr"]
    cases = (
        ({"indptr_ptr": made["indptr_ptr"]}, "indices_ptr has is_index=True"),
        ({**made, "indices_ptr": column[:-1]}, f"indices_ptr: make_inputs gives shape ({column.size - 1},)"),
        ({**made, "indices_ptr": column.astype("int64")}, "indices_ptr: make_inputs gives int64"),
        ({**made, "indices_ptr": column + 10_000}, "past the end of x_ptr"),
    )
    errors = capture_each([changed(SPARSE, make_inputs=lambda seed, given=given: given) for given, _ in cases])
    for error, (_, message) in zip(errors, cases, strict=True):
        assert message in str(error)


def test_an_array_of_addresses_names_what_it_points_to():
    one = Array(shape=(4,), dtype="fp16")
    with pytest.raises(SizeError, match="points_to takes names of arguments"):
        Array(shape=(1,), dtype="int64", points_to=(one,))


def test_arguments_have_to_match_the_function():
    launch = matmul.kernel.at()
    fewer = {name: value for name, value in launch.arguments.items() if name != "stride_ak"}
    more = {**launch.arguments, "stride_zz": 1}
    errors = capture_each([changed(launch, arguments=fewer), changed(launch, arguments=more)])
    assert "is not given stride_ak" in str(errors[0])
    assert "has no parameter stride_zz" in str(errors[1])


def test_the_table_of_what_is_followed_is_what_captures_say():
    text = (Path(__file__).parents[2] / "docs" / "capture.md").read_text(encoding="utf-8")
    table = text.partition("| in the kernel | followed |")[2].partition("\n\n")[0].splitlines()[2:]
    rows = {label: cells for label, *cells in (line.strip("| ").split(" | ") for line in table)}
    launches = [one.at() for one in constructs.kernels.values()]
    found = capture_each(launches), capture_each(launches, full=True)
    for label, (name, *results) in zip_longest(rows, zip(constructs.kernels, *found, strict=True)):
        assert label == name
        for cell, result in zip(rows[label], results, strict=True):
            if cell == "yes":
                assert not isinstance(result, Exception), f"{label}: {result}"
            else:
                assert str(result).startswith("constructs.py:") and cell.removeprefix("no: ") in str(result), label


def test_device_library_functions_are_data():
    (found,) = capture_all([hard.library.at()])
    assert found.trace.n_workgroups == 8
    (whole,) = capture_all([hard.library.at()], full=True)
    assert_equal_traces(found.trace, whole.trace)


def test_operations_of_products_are_counted_in_whole_tiles():
    size = {"M": 64, "N": 33, "K": 31}
    (ours,), (real,) = (capture_all([matmul.kernel.at(**size, GROUP_M=3)], full=full) for full in (False, True))
    assert ours.flops == real.flops == {"fp16": 2 * (1 * 2) * 1 * 64 * 32 * 32}  # tiles, steps, a product
    launches = [matmul.kernel.at(), softmax.kernel.at(), constructs.kernels["`tl.dot`, `tl.dot_scaled`"].at()]
    launches += [causal(S=130, H=heads) for heads in (1, 2)]
    large, none, scaled, one_head, two_heads = (found.flops for found in capture_all(launches))
    assert large == {"fp16": 2 * (5 * 7) * 4 * 64 * 32 * 32}
    assert none == {}
    assert scaled == {"fp8": 4 * 2 * 32 * 32 * 64}, "in each of four programs"
    ((kind, one),) = one_head.items()
    assert two_heads == {kind: 2 * one}, "of workgroups with more and fewer blocks before the diagonal"


def test_a_kernel_that_states_no_operations_and_no_type_has_those_of_its_products(tmp_path):
    declared = load(f"{Path(matmul.__file__)}", {"M": 64, "N": 33, "K": 31})
    assert (declared.flops, declared.issued_flops) == (2.0 * 64 * 33 * 31, 2 * 2 * 64 * 32 * 32), "whole tiles"
    text = Path(matmul.__file__).read_text(encoding="utf-8").replace("    flops=lambda s: 2.0 * s.M * s.N * s.K,\n", "")
    c = '        "c_ptr": Array(shape=(s.M, s.N), dtype="fp16", role="out"),\n'
    first = c.replace("fp16", "fp32")  # a sum in fp32, before the operands
    text = text.replace(c, "").replace("arguments=lambda s: {\n", "arguments=lambda s: {\n" + first)
    assert "flops=" not in text and text.count('c_ptr": Array') == 1
    (tmp_path / "undeclared.py").write_text(text, encoding="utf-8")
    found = load(str(tmp_path / "undeclared.py"), {"M": 64, "N": 33, "K": 31})
    assert (found.flops, found.issued_flops, found.dtype) == (2 * 2 * 64 * 32 * 32, 2 * 2 * 64 * 32 * 32, "fp16")
