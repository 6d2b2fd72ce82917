"""Do the commands of README and docs that the default tests only parse run as typed, against the shipped fakes?

A folder holds what they name: a matmul of the reader's own with its declaration, trace and recording, runs, bundles and
results of the stand-ins, a folder of remaps. A scripted server answers for the model. Sizes are those of
`tests.docs.substitutions`; `ELSEWHERE` says why few are left out.
"""

import csv
import json
import os
import re
import shlex
import shutil
import subprocess
import sys

import pytest

from swizzle_sim.capture.init_kernel import write_declaration
from swizzle_sim.capture.recorder import VERSION
from tests.agent.scripted_server import ScriptedServer, proposal
from tests.docs.scene import MINE, set_scene
from tests.docs.substitutions import only_parsed, smaller
from tests.docs.typed import ROOT, all_typed

pytest.importorskip("triton")
ELSEWHERE = {  # pattern -> why it is not run here
    r"--scheduler": "a Dask cluster: tests/search",
    r"lab calibrate --gpu mi300x": "the GPU: tests/hardware reads what one printed",
    r"lab tune-prompt": "hundreds of questions: tests/agent",
    r"--context mine\.py|--program|--replay runs|--resume runs|keep runs": "tests/agent and search, on their runs",
    r"\bbias_add\b|captured\.trace": "a package of one's own: tests/docs/test_suite_kernel.py",
    r"lab mcp|swizzle-sim explore": "a server: tests/agent/test_mcp.py, tests/explore, tests/browser",
    r"swizzle-sim (retune|fleet)": "a library's table, recordings or the whole suite: tests/search",
    r"check gemm\.py$": "tests/docs, with what is printed",
}
SHORTER = [  # what makes minutes of them seconds, beyond `smaller`
    (r"(?<=^swizzle-sim optimize )(?!gemm\b)(.*)", r"\1 --no-uncertainty"),
    (r" --tune( [a-z,]+)?$", r" --tune\1 --evaluations 4"),
    (r"(--proposer (?:llm|direct|two-stage))", r"\1 --iterations 1"),
]
TYPED = {one.text: one for one in all_typed() if one.words[0] == "swizzle-sim" and only_parsed(one.text)}
HELD = [one for text, one in TYPED.items() if not any(re.search(pattern, text) for pattern in ELSEWHERE)]
MATMUL = """\
import torch
import triton
import triton.language as tl

configs = [triton.Config({"BLOCK": 64, "GROUP_M": group}, num_warps=4) for group in (8, 1)]


@triton.autotune(configs=configs, key=["M", "N", "K"])
@triton.jit
def matmul_kernel(a_ptr, b_ptr, c_ptr, M, N, K, BLOCK: tl.constexpr, GROUP_M: tl.constexpr):
    pid = tl.program_id(0)
    num_pid_m = tl.cdiv(M, BLOCK)
    num_pid_n = tl.cdiv(N, BLOCK)
    in_group = GROUP_M * num_pid_n
    first = pid // in_group * GROUP_M
    height = min(num_pid_m - first, GROUP_M)
    pid_m = first + pid % in_group % height
    pid_n = pid % in_group // height
    rows = pid_m * BLOCK + tl.arange(0, BLOCK)
    cols = pid_n * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    for k in range(0, K, BLOCK):
        inner = k + tl.arange(0, BLOCK)
        a = tl.load(a_ptr + rows[:, None] * K + inner[None, :])
        b = tl.load(b_ptr + inner[:, None] * N + cols[None, :])
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], acc.to(tl.float16))


def matmul(a, b):
    M, K = a.shape
    K, N = b.shape
    c = torch.empty((M, N), device=a.device, dtype=a.dtype)
    grid = lambda meta: (triton.cdiv(M, meta["BLOCK"]) * triton.cdiv(N, meta["BLOCK"]),)
    matmul_kernel[grid](a, b, c, M, N, K)
    return c


if __name__ == "__main__":
    matmul(torch.randn(256, 64, device="cuda").half(), torch.randn(64, 256, device="cuda").half())
"""


def recording(source):
    """Recording of one launch of the matmul, as `swizzle_sim.record` writes it."""
    shapes = {"a_ptr": (256, 64), "b_ptr": (64, 256), "c_ptr": (256, 256)}
    tensors = {
        name: {"tensor": {"shape": shape, "strides": (shape[1], 1), "dtype": "fp16", "storage": at, "offset_bytes": 0}}
        for at, (name, shape) in enumerate(shapes.items())
    }
    kernel = source[source.index("@triton.jit") : source.index("def matmul(")].strip()
    return {
        "format": "swizzle-sim-recording",
        "format_version": VERSION,
        "machine": {},
        "kernels": [
            {
                "module": "my_code",
                "name": "matmul_kernel",
                "source": f"import triton\nimport triton.language as tl\n\n\n{kernel}\n",
            }
        ],
        "launches": [
            {
                "kernel": 0,
                "count": 2,
                "grid": [16],
                "arguments": {**tensors, "M": 256, "N": 256, "K": 64},
                "constexprs": {"BLOCK": 64, "GROUP_M": 8},
                "options": {"num_warps": 4},
                "config": None,
                "as_run": {},
                "problems": [],
            }
        ],
    }


@pytest.fixture(scope="module")
def workshop(tmp_path_factory):
    """The folder that every command is typed in, a copy of it each."""
    folder = tmp_path_factory.mktemp("workshop")
    (folder / "my_code.py").write_text(MATMUL)
    for name in ("my_kernel.py", "matmul_kernel.py"):
        write_declaration(f"{folder}/my_code.py:matmul", folder / name)
    (folder / "sgemm.cu").write_text("namespace library { __global__ void sgemm(const float* A, float* C, int M) {} }")
    (folder / "best.txt").write_text(MINE)
    (folder / "calls.json").write_text(json.dumps(recording(MATMUL)))
    (folder / "recordings").mkdir()
    shutil.copy(folder / "calls.json", folder / "recordings" / "one.json")
    with (folder / "calls.csv").open("w", newline="") as table:
        csv.writer(table).writerows([("M", "N", "calls"), (512, 512, 7), (1024, 512, 1)])
    shutil.copytree(ROOT / "examples" / "src", folder / "src")
    words = [sys.executable, "-m", "swizzle_sim", "capture", "my_kernel.py", "-o", "my.trace.npz"]
    subprocess.run(words, cwd=folder, check=True, capture_output=True)
    data = ROOT / "tests" / "hardware" / "data"
    shutil.copytree(data, folder / "tests" / "hardware" / "data")
    shutil.copy(data / "new_counter_collection.csv", folder / "FILE")
    shutil.copytree(data / "h200" / "transpose", folder / "gemm-bundle")
    shutil.copytree(data / "h200" / "transpose", folder / "measured")
    return folder


@pytest.fixture(scope="module")
def a_run(tmp_path_factory):
    """A finished run, for commands that name one."""
    folder = tmp_path_factory.mktemp("run") / "run"
    words = ["optimize", "gemm", "M=1024", "N=512", "K=128", "--no-compile", "--no-uncertainty", "-o", str(folder)]
    subprocess.run([sys.executable, "-m", "swizzle_sim", *words], check=True, capture_output=True)
    return folder


@pytest.mark.parametrize("one", HELD, ids=lambda one: one.text)
def test_a_command_runs_as_typed(one, workshop, a_run, tmp_path):
    here = shutil.copytree(workshop, tmp_path / "here")
    if " import " in one.text:  # a result that was measured, wherever the page says it lies
        for name in re.findall(r"\bruns/[\w.-]+|\bRUN\b", one.text):
            shutil.copytree(workshop / "measured", here / name)
    elif not re.search(r"gemm-bundle|tests/hardware", one.text.partition(" -o ")[0]):
        set_scene(here, one.page, one.text, a_run) if re.search(r"runs/|RUN|src/|gemm\.py", one.text) else None
    made = "my_kernel.py" if "init-kernel" in one.text else "gemm-bundle"
    if re.search("init-kernel| bundle ", one.text):
        os.replace(here / made, here / f"{made}.before")
    text = smaller(one.text.replace(" --baseline", " --write-baseline"))
    for pattern, instead in SHORTER:
        text = re.sub(pattern, instead, text)
    with ScriptedServer([proposal("contiguous+row")], models=("gpt-4o", "NAME")) as server:
        words = shlex.split(re.sub(r"http://127\.0\.0\.1:8000/v1", server.base, text))[1:]
        env = {**os.environ, "SWIZZLE_SIM_COMPILE": "1", "OPENAI_API_KEY": "a key", "OPENAI_BASE_URL": server.base}
        command = [sys.executable, "-m", "swizzle_sim", *words]
        done = subprocess.run(command, cwd=here, env=env, capture_output=True, text=True, timeout=300, check=False)
    expected = 1 if re.search(r"check src/(?!.*baseline)", one.text) else 0
    assert done.returncode == expected, done.stdout + done.stderr


def test_little_is_left_out():
    assert len(HELD) > 40
    assert all(any(re.search(pattern, text) for text in TYPED) for pattern in ELSEWHERE)
