"""Is a tensor that is given twice, or in part, one tensor: in a trace, a check, a compile and on a node?"""

from dataclasses import replace

import pytest

from swizzle_sim.capture.user_kernel import capture_file, load, request_of
from swizzle_sim.capture.workload import workload
from swizzle_sim.hardware.bundle import Finalist, make_bundle
from swizzle_sim.language import Swizzle
from swizzle_sim.rewrite import rewrite_workload
from swizzle_sim.rewrite.check import run_side_by_side
from swizzle_sim.workload.kernels import kernel
from swizzle_sim.workload.launch import Array
from tests.capture.same_trace import needs_triton
from tests.hardware.conftest import confirm as confirm  # noqa: PLC0414  (a fixture)
from xcd_model import gpu
from xcd_model.errors import SizeError

HALVES = """
import triton
import triton.language as tl
from swizzle_sim.capture import Array, Kernel

@triton.jit
def halves(x_ptr, low_ptr, high_ptr, n, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(high_ptr + at, tl.load(x_ptr + at, mask=at < n) + tl.load(low_ptr + at, mask=at < n), mask=at < n)

kernel = Kernel(
    halves,
    sizes={"n": 1024},
    arguments=lambda s: {
        "x_ptr": Array(shape=(2 * s.n,), dtype="fp32"),
        "low_ptr": Array(shape=(s.n,), dtype="fp32", same_as="x_ptr"),
        "high_ptr": Array(shape=(s.n,), dtype="fp32", role="out", same_as="x_ptr", offset=s.n),
        "n": s.n,
    },
    constexprs={"B": 128},
    grid=lambda s: (triton.cdiv(s.n, 128),),
)
"""


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "halves.py").write_text(HALVES)
    return str(tmp_path / "halves.py")


@needs_triton
@pytest.mark.parametrize("full", [False, True])
def test_lines_are_those_of_one_tensor(file, full):
    trace, manifest = capture_file(request_of(file, {}), full=full)
    assert [(one.name, one.size_bytes) for one in trace.tensors] == [("x_ptr", 8192)]
    assert trace.base.reshape(8, 3).tolist() == [[4 * w, 4 * w, 32 + 4 * w] for w in range(8)]
    assert manifest["launch"]["arguments"]["high_ptr"]["array"]["offset"] == 1024


@needs_triton
def test_it_is_checked_and_confirmed_as_one_tensor(file, tmp_path, confirm):
    work = workload(file, {"n": 1000})
    assert {name: one.role for name, one in work.launch.storage.items()} == {"x_ptr": "inout"}
    found = rewrite_workload(work, Swizzle.parse("pid = num_pids - 1 - pid"), num_xcds=8)
    (case,) = run_side_by_side(found, [(work, None, "whole")])
    assert case.whole and case.moved and not case.races
    orders = [Finalist(name="reversed", source="pid = num_pids - 1 - pid\n")]
    make_bundle(load(file, {"n": 1000}), gpu("mi300x"), orders, tmp_path / "bundle", check=False)
    done = confirm(tmp_path / "bundle", "--no-time")
    assert done.result["candidates"]["candidate_1"]["check_after"]["how"] == "bitwise", done.err


def test_what_is_no_part_of_a_tensor_is_refused_by_name():
    assert launched(offset=4).storage["x"].role == "inout"
    for change, says in (
        ({"offset": 5}, "high: ends 1 items past the end of x"),
        ({"same_as": "y"}, "high: same_as = 'y': a tensor of its own, of type fp32"),
        ({"same_as": "low"}, "high: same_as = 'low': a tensor of its own"),
        ({"dtype": "int32"}, "of type int32"),
    ):
        with pytest.raises(SizeError, match=says):
            launched(**change)
    with pytest.raises(SizeError, match="offset = 3: items of the tensor that same_as names"):
        Array(shape=(4,), dtype="fp32", offset=3)


def launched(**change):
    arrays = {name: Array(shape=(4,), dtype="fp32", same_as="x") for name in ("low", "high")}
    arrays["high"] = replace(arrays["high"], role="out", **change)
    launch = kernel("softmax", M=4, N=64).launch
    return replace(launch, arguments={"x": Array(shape=(8,), dtype="fp32"), **arrays})
