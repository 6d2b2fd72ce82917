"""Does a recording hold what was launched, and is it a declaration here, whatever its text says?"""

import importlib.util
import json
import os
import shutil
import subprocess
import sys

import pytest

from swizzle_sim.capture.recording import (
    RecordedSizes,
    check_source,
    launched_in_order,
    read_recording,
    recorded_declaration,
)
from swizzle_sim.capture.user_kernel import capture_file, request_of
from swizzle_sim.workload.kernels import declared_name, file_of, is_user_kernel
from tests.capture.uncompiled import uncompiled  # noqa: F401
from tests.docs.typed import ROOT
from xcd_model.errors import CaptureError


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """Recording of `recorded_calls`, made by a copy of the recorder's file alone, and what it said."""
    if importlib.util.find_spec("triton") is None:
        pytest.skip("needs the triton extra")
    folder = tmp_path_factory.mktemp("node")
    shutil.copy(ROOT / "swizzle_sim" / "capture" / "recorder.py", folder)
    shutil.copy(ROOT / "tests" / "capture" / "recorded_calls.py", folder)
    left_out = ("PYTHONPATH", "TRITON_INTERPRET")
    done = subprocess.run(
        [sys.executable, "recorded_calls.py", "calls"],
        cwd=folder,
        env={name: value for name, value in os.environ.items() if name not in left_out},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder / "calls.json", done.stderr


def test_launches_are_counted_and_those_of_an_autotuner_that_measures_are_not(recorded):
    path, said = recorded
    first, tuned, other = read_recording(path)["launches"]
    assert (first["count"], first["grid"], first["options"]) == (3, [24], {"num_warps": 8})
    assert first["constexprs"] == {"BLOCK": 16, "ACC": "tl.float32"}
    assert (tuned["count"], tuned["options"]["num_warps"], tuned["config"]) == (1, 2, {"place": 0, "of": 2})
    assert other["problems"] == ["ACC: a builtin_function_or_method as an argument is not stored"]
    assert "a launch is not recorded (TypeError: missing a required argument: 'order')" in said


def test_launches_keep_their_order_and_places(recorded):
    order = launched_in_order(recorded[0])
    assert [place for place, _ in order].count(0) == 3 and {place for place, _ in order} == {0, 1, 2}
    places = order[0][1]
    assert list(places) == ["a", "b", "c", "order"] and places["c"] - places["a"] == 128


def test_tensors_keep_layout_storage_and_integers(recorded):
    tensors = read_recording(recorded[0])["launches"][0]["arguments"]
    assert [tensors[name]["tensor"]["storage"] for name in "abc"] == [0, 1, 0]
    assert tensors["c"]["tensor"]["offset_bytes"] == 128
    assert "values" in tensors["order"]["tensor"]
    assert "values" not in tensors["a"]["tensor"]


def test_the_source_stands_alone(recorded):
    text = read_recording(recorded[0])["kernels"][0]["source"]
    assert text.startswith("import triton\nimport triton.language as tl\n")
    assert "Tensor" not in text, "an annotation that is not Triton's is dropped"
    compile(text, "flat", "exec")


def test_a_recording_is_captured_with_its_index(recorded, uncompiled):  # noqa: F811
    trace, manifest = capture_file(request_of(f"{recorded[0]}:matmul", {}))
    assert trace.n_workgroups == 24
    assert manifest["facts"]["problem"] == {"M": 64, "N": 96, "K": 32}
    assert manifest["facts"]["tiles"] == [4, 6]
    assert {at["sizes"]["M"] for at in manifest["grids"]} > {64}, "and it is known at other sizes"


def test_a_tensor_given_twice_is_one(recorded, tmp_path):
    document = json.loads(recorded[0].read_text(encoding="utf-8"))
    given = document["launches"][0]["arguments"]
    given["c"] = given["a"]
    (tmp_path / "twice.json").write_text(json.dumps(document))
    launch = recorded_declaration(tmp_path / "twice.json", "matmul").at()
    assert launch.arrays["c"].same_as == "a" and launch.storage["a"].role == "inout" and "b" in launch.storage


def test_a_launch_that_could_not_be_stored_says_so(recorded):
    with pytest.raises(CaptureError, match="ACC: a builtin_function_or_method as an argument is not stored"):
        capture_file(request_of(f"{recorded[0]}:matmul.3", {}))
    with pytest.raises(CaptureError, match=r"say which launch: calls.json:matmul \(24 programs, 3 times\), .*matmul.2"):
        capture_file(request_of(str(recorded[0]), {}))


def _changed(document, *place, value):
    inner = document
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    return document


BAD = {
    "no JSON": ("format", None),
    "another version": (("format_version",), 9),
    "another file": (("format",), "x"),
    "a grid of four": (("launches", 0, "grid"), [1, 1, 1, 1]),
    "a grid beyond 32 bits": (("launches", 0, "grid"), [1 << 40]),
    "a kernel that is not there": (("launches", 0, "kernel"), 7),
    "a side of text": (("launches", 0, "arguments", "a", "tensor", "shape"), ["64", 32]),
    "a side too many": (("launches", 0, "arguments", "a", "tensor", "shape"), [64, 32, 1]),
    "an unknown type": (("launches", 0, "arguments", "a", "tensor", "dtype"), "float7"),
    "a list as an argument": (("launches", 0, "arguments", "M"), [1]),
    "no count": (("launches", 0, "count"), 0),
    "a source of lists": (("kernels", 0, "source"), ["def matmul(): pass"]),
    "another statement": (("kernels", 0, "source"), "def matmul(): pass\nprint()"),
    "a decorator": (("kernels", 0, "source"), "@print\ndef matmul(): pass"),
    "no decorator": (("kernels", 0, "source"), "def matmul(): pass"),
    "an option that runs": (("kernels", 0, "source"), "@triton.jit(noinline=print())\ndef matmul(): pass"),
    "a value that runs": (("kernels", 0, "source"), "X = print()\n@triton.jit\ndef matmul(): pass"),
    "a module of others": (("kernels", 0, "source"), "import os\n@triton.jit\ndef matmul(): pass"),
    "a name of a module of others": (("kernels", 0, "source"), "from os import path\n@triton.jit\ndef matmul(): pass"),
    "a function that is not there": (("kernels", 0, "name"), "other"),
}


@pytest.mark.parametrize("what", BAD)
def test_what_cannot_be_is_refused_in_one_line(recorded, tmp_path, what):
    place, value = BAD[what]
    path = tmp_path / "bad.json"
    text = recorded[0].read_text(encoding="utf-8")
    path.write_text("{" if value is None else json.dumps(_changed(json.loads(text), *place, value=value)))
    with pytest.raises(CaptureError) as caught:
        read_recording(path)
    assert "\n" not in str(caught.value)
    assert caught.value.code == "format"


def test_deep_nesting_is_refused_where_the_limit_is_high(tmp_path):
    (tmp_path / "deep.json").write_text("[" * 100_000)
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(100_000)
    try:
        with pytest.raises(CaptureError, match="is no JSON"):
            read_recording(tmp_path / "deep.json")
        assert sys.getrecursionlimit() == 100_000
    finally:
        sys.setrecursionlimit(limit)


def test_values_that_unpack_to_more_are_refused(recorded, tmp_path):
    document = json.loads(recorded[0].read_text(encoding="utf-8"))
    document["launches"][0]["arguments"]["order"]["tensor"]["shape"] = [3]
    path = tmp_path / "more.json"
    path.write_text(json.dumps(document))
    with pytest.raises(CaptureError, match="24 bytes of integers"):
        capture_file(request_of(f"{path}:matmul", {}))


def test_a_source_is_checked_before_anything_is_made_of_it():
    assert check_source("f", "def f(:", 100) == "text that parses"
    assert check_source("f", "x" * 200, 100) == "text of at most 100 bytes"
    assert check_source("f", "from math import pi\nX = float('inf')\n@triton.jit\ndef f(): pass", 100) == ""


def test_sides_strides_and_grid_follow_the_sizes():
    tensors = {"a": ((64, 32), (32, 1)), "b": ((32, 96), (1, 40)), "ids": ((64,), (1,))}
    scalars = {"M": 64, "N": 96, "K": 32, "stride_am": 32, "stride_bn": 40, "eight": 8}
    found = RecordedSizes(scalars, tensors, {"ids"}, [24], [lambda v: -(-v["M"] // 16), lambda v: -(-v["N"] // 16)])
    assert found.defaults == {"M": 64, "N": 96, "K": 32, "eight": 8}
    other = {**found.defaults, "M": 33, "K": 16}
    assert [side(other) for side in found.layouts["a"].sides] == [33, 16]
    assert [step(other) for step in found.layouts["a"].strides] == [16, 1]
    assert [side(other) for side in found.layouts["ids"].sides] == [64], "values that are known keep their shape"
    assert found.values(other)["stride_am"] == 16
    assert found.values(other)["stride_bn"] == 40, "a padded stride stays"
    assert [side(other) for side in found.grid] == [18]
    square = RecordedSizes({"M": 64, "K": 64}, {"a": ((64, 64), (64, 1))}, set(), [64])  # equal ones scale together
    assert square.defaults == {"M": 64} and square.values({"M": 16}) == {"M": 16, "K": 16}


def test_a_recording_is_a_kernel_on_the_command_line():
    assert is_user_kernel("calls.json")
    assert is_user_kernel("runs/calls.json:matmul.2")
    assert (is_user_kernel("my.py@3"), declared_name("my.py@3"), file_of("my.py@3")) == (True, "@3", "my.py")
    assert file_of("runs/calls.json:matmul.2") == "runs/calls.json"
    assert declared_name("my.py.json:matmul") == "matmul"
    assert not is_user_kernel("gemm")
