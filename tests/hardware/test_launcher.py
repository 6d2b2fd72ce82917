"""Does the launcher, which has no PyTorch, hand over what Triton's own would, and is what it computes compared?"""

import hashlib
import importlib
import json
import os
import shutil
import struct
import subprocess
import sys
import types

import pytest

from swizzle_sim.hardware.node.launcher import COUNT_WARMUPS, COUNTED, STORED
from swizzle_sim.hardware.node.manifest import Refused
from tests.capture.same_trace import needs_triton
from tests.hardware.conftest import STAND_IN

COMPILER = shutil.which("cc") or shutil.which("gcc")
pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C compiler")
VALUES = [1.5, -2.0, 8.25]


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    place = tmp_path_factory.mktemp("library") / "libamdhip64.so"
    source = STAND_IN / "gpu_library.c"
    subprocess.run([COMPILER, "-shared", "-fPIC", "-Wall", "-Werror", "-o", str(place), str(source)], check=True)
    return place


@pytest.fixture
def stored(tmp_path):
    """Code object and buffers of a kernel ``copy(x, y, n, scale)``, as a worker leaves them."""
    folder = tmp_path / "launches"
    folder.mkdir()
    (folder / "x.bin").write_bytes(struct.pack("3f", *VALUES))
    (folder / "original.hsaco").write_bytes(b"code")
    wanted = hashlib.sha256(struct.pack("3f", *(2 * one for one in VALUES)) + b"\xff" * 4).hexdigest()
    kernel = {"what": "kernel", "candidate": "original", "code": "original.hsaco", "symbol": "copy", "grid": [3, 2, 1]}
    kernel |= {"threads": 256, "shared": 1024, "launches": 1, "scratch": 0, "outputs": {"y": wanted}}
    kernel |= {"arguments": [["buffer", "x"], ["buffer", "y"], ["i32", 3], ["fp32", 2.0]]}
    buffers = {"x": {"bytes": 12, "role": "in", "file": "x.bin"}, "y": {"bytes": 16, "role": "out", "file": None}}
    other = {**kernel, "candidate": "candidate_1", "arguments": [*kernel["arguments"][:3], ["fp32", 3.0]]}
    lines = [kernel, other, {"what": "buffers", "vendor": "amd", "buffers": buffers}]
    (folder / STORED).write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return folder


def launch(made, stored, library, *names, **env):
    out = stored / "out.jsonl"
    words = [sys.executable, "-S", str(made / "confirm.py"), "launcher", "--stored", str(stored), "--out", str(out)]
    words += ["--library", str(library), "--flush-bytes", "64", "--candidates", *names]
    env = {**os.environ, "STAND_IN_CALLS": str(stored / "calls"), **env}
    done = subprocess.run(words, capture_output=True, text=True, env=env)
    calls = (stored / "calls").read_text().splitlines() if (stored / "calls").exists() else []
    lines = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
    return done, lines, calls


def test_arguments_sizes_and_outputs_arrive(made, stored, library):
    done, lines, calls = launch(made, stored, library, "original", "candidate_1")
    assert done.returncode == 0, done.stderr
    assert [(one["candidate"], one["how"]) for one in lines] == [("original", "bitwise"), ("candidate_1", "differs")]
    launches = [line for line in calls if line.startswith("launch")]
    assert launches == ["launch copy 3,2,1 256,1,1 1024 1"] * 2 * (COUNT_WARMUPS + COUNTED)
    before = calls[: calls.index(launches[0])]
    assert before[-3:] == ["hipMemset", "hipMemset", "hipDeviceSynchronize"], "poison, caches, then the launch"


@pytest.mark.parametrize("shared", [1024, 131072])
def test_on_nvidia_l1_and_shared_memory_are_divided_as_triton_does(made, stored, library, shared):
    """Seen on an H100: a GEMM that spills read 11 % less memory where only the dynamic size was set."""
    text = (stored / STORED).read_text().replace('"vendor": "amd"', '"vendor": "nvidia"')
    (stored / STORED).write_text(text.replace('"shared": 1024', f'"shared": {shared}'))
    done, lines, calls = launch(made, stored, library, "original")
    assert done.returncode == 0, done.stderr
    assert lines[0]["how"] == "bitwise"
    assert [one for one in calls if one.startswith(("prefer", "attribute"))] == (
        ["prefer shared", f"attribute 8 {232448 - 448}"] if shared > 49152 else []
    )


def test_a_call_that_fails_is_named(made, stored, library):
    done, lines, _ = launch(made, stored, library, "original", STAND_IN_FAILS="hipModuleLoadData")
    assert done.returncode == 1 and "hipModuleLoadData returned 100" in done.stderr and not lines
    gone, _, _ = launch(made, stored, stored / "no.so", "original")
    assert gone.returncode == 1 and "no.so" in gone.stderr


def compiled(signature, **about):
    metadata = {"name": "k", "shared": 64, "num_warps": 8, "warp_size": 64, "num_ctas": 1} | about
    source = types.SimpleNamespace(signature=signature, constants={(3,): 128})
    return types.SimpleNamespace(asm={"hsaco": b"code"}, metadata=types.SimpleNamespace(**metadata), src=source)


REAL = """
import json, sys
from pathlib import Path
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from swizzle_sim.hardware.node.launches import stored_kernel

@triton.jit
def copy(x_ptr, y_ptr, n, stride, scale, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B) * stride
    tl.store(y_ptr + at, tl.load(x_ptr + at, mask=at < n) * scale, mask=at < n)

signature = {"x_ptr": "*fp32", "y_ptr": "*fp32", "n": "i32", "stride": "constexpr", "scale": "fp32", "B": "constexpr"}
code = ASTSource(copy, signature, {(3,): 1, (5,): 256})
array = {"array": {}}
values = {"x_ptr": array, "y_ptr": array, "n": {"value": 7}, "stride": {"value": 1}, "scale": {"value": 2.0}}
launch = {"arguments": list(values.items()), "grid": [3], "launches": 1}
for backend, arch, warp in (("hip", "gfx942", 64), ("hip", "gfx950", 64), ("cuda", 90, 32)):
    compiled = triton.compile(code, target=GPUTarget(backend, arch, warp), options={"num_warps": 8})
    print(json.dumps(stored_kernel(compiled, launch, Path(sys.argv[1]), f"{backend}_{arch}")))
"""


@needs_triton
def test_code_objects_of_triton_are_launched_with_all_their_arguments(tmp_path):
    """Of AMD's, which no GPU here launches, the code object itself lists the arguments that it reads."""
    (tmp_path / "real.py").write_text(REAL)
    env = {name: value for name, value in os.environ.items() if name not in ("TRITON_INTERPRET", "STAND_IN_GPU")}
    env |= {"PYTHONPATH": str(STAND_IN), "TRITON_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run([sys.executable, tmp_path / "real.py", tmp_path], capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    wanted = [["buffer", "x_ptr"], ["buffer", "y_ptr"], ["i32", 7], ["fp32", 2.0]]
    for one, threads in zip(found, (512, 512, 256), strict=True):
        assert (one["symbol"], one["threads"], one["grid"], one["arguments"]) == ("copy", threads, [3, 1, 1], wanted)
        if one["code"].endswith("hsaco"):
            code = (tmp_path / one["code"]).read_bytes()
            assert code.startswith(b"\x7fELF") and b"copy.kd" in code
            assert code.count(b".value_kind") == len(wanted) + 2, "and two addresses of scratch memory"


@pytest.mark.parametrize(
    ("signature", "about", "words"),
    [
        ({"x": "nvTmaDesc"}, {}, "argument x is of type nvTmaDesc"),
        ({"x": "*fp32"}, {"num_ctas": 2}, "clusters"),
        ({"x": "*fp32"}, {"launch_cooperative_grid": True}, "launch_cooperative_grid"),
    ],
)
def test_what_it_cannot_launch_is_refused_by_name(tmp_path, monkeypatch, signature, about, words):
    monkeypatch.setitem(sys.modules, "torch", types.ModuleType("torch"))
    launches = importlib.import_module("swizzle_sim.hardware.node.launches")
    monkeypatch.delitem(sys.modules, launches.__name__)
    launch = {"arguments": [["x", {"array": {}}]], "grid": [1], "launches": 1}
    with pytest.raises(Refused, match=words):
        launches.stored_kernel(compiled(signature, **about), launch, tmp_path, "k")
