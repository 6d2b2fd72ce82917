"""What a documented command finds where it is typed: the files, run folders and bundles that it names."""

import re
import shutil
from pathlib import Path

from swizzle_sim import describe
from swizzle_sim.capture.init_kernel import write_declaration
from tests.docs.substitutions import EXAMPLE
from tests.docs.typed import ROOT, files_on

MINE = """\
run = num_pids // num_xcds
pid = (pid % num_xcds) * run + pid // num_xcds
"""
TEMPLATE = """\
template bands(size: powers 1..4)
    group = min(size, num_pid_m)
    first = (pid // (group * num_pid_n)) * group
    length = min(num_pid_m - first, group)
    step = pid % (group * num_pid_n)
    pid_m = first + step % length
    pid_n = step // length
"""
CODE = """\
import triton
import triton.language as tl


@triton.jit
def matmul(a_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(a_ptr + at, at, mask=at < n)
"""


def _touch(build, at):
    """A row of tiles for each workgroup along x."""
    rows = build.array("rows", rows=64, cols=128, item_bytes=2)
    build.step(build.read(rows, row=at.x * 16, col=at.y * 64, rows=16, cols=64))


def set_scene(folder: Path, page: str, text: str, run: Path) -> None:
    """Put into a folder what the command of a page reads; ``run`` is a small finished run."""
    files = {"mine.txt": MINE, "best.txt": MINE, "my_code.py": CODE, **files_on(page)}
    if "--template" in text:
        files["mine.txt"] = TEMPLATE
    for name, what in files.items():
        (folder / name).write_text(what, encoding="utf-8")
    shutil.copy(ROOT / "xcd_model" / "spec" / "gpus" / "mi300x.toml", folder / "mine.toml")
    if "hip_gemm.trace.npz" in text:
        describe(
            "hip_gemm", "4x2", {"threads": 64, "vgprs": 32, "lds_bytes": 0}, _touch, file=folder / "hip_gemm.trace.npz"
        )
    if "examples/" in text:
        shutil.copytree(ROOT / "examples", folder / "examples")
    if EXAMPLE in text:
        write_declaration(f"{folder}/examples/attention.py:attend", folder / EXAMPLE)
    read = re.sub(r"(--out|-o) \S+", "", text)
    for name in re.findall(r"\bruns/[\w.-]+|\bRUN\b", read):
        shutil.copytree(run, folder / name)
    measured = ROOT / "tests" / "hardware" / "data" / "h200" / "transpose"
    for name in re.findall(r"gemm-bundle|tests/hardware/data/h200/transpose", read):
        shutil.copytree(measured, folder / name)
