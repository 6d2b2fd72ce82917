"""Does the standalone HIP file compile, with every warning on, and order tiles as the candidate does?"""

import shutil
import subprocess

import pytest

from swizzle_sim.capture.workload import of_kernel
from swizzle_sim.hardware.bundle_files import device_of, hip_source
from swizzle_sim.language import Swizzle, family
from swizzle_sim.rewrite import rewrite_workload
from swizzle_sim.workload.kernels import kernel
from tests.hardware.conftest import STAND_IN
from xcd_model import gpu

COMPILER = shutil.which("c++") or shutil.which("g++")
STRICT = ["-std=c++17", "-Wall", "-Wextra", "-Werror", "-I", str(STAND_IN / "hip"), "-x", "c++"]
SIZES = {
    "gemm": {"M": 130, "N": 97, "K": 33, "BLOCK_M": 32, "BLOCK_N": 16, "BLOCK_K": 16},
    "transpose": {"M": 300, "N": 170, "BLOCK_SIZE_M": 32, "BLOCK_SIZE_N": 64},
}
CASES = [("gemm", "contiguous+group_m(size=3)"), ("gemm", "hilbert"), ("transpose", "contiguous+row")]
CASES.append(("transpose", "chunked(chunk=2)"))


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler")
@pytest.mark.parametrize("name,spec", CASES)
def test_hip(tmp_path, name, spec):
    work, device = of_kernel(kernel(name, **SIZES[name])), device_of(gpu("mi300x"))
    swizzle = Swizzle.parse(family(spec), name=spec)
    found = rewrite_workload(work, swizzle, num_xcds=8)
    source = hip_source(name, device, found.guarded.form, found.grid, work.problem, f'{spec} "quoted\\\n', "a.hip")
    (tmp_path / "a.hip").write_text(source)
    built = subprocess.run([COMPILER, *STRICT, "a.hip", "-o", "a"], cwd=tmp_path, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    said = subprocess.run([tmp_path / "a", "--order"], capture_output=True, text=True, check=True)
    assert [int(line) for line in said.stdout.split()] == swizzle.permutation(work.grid, 8, work.problem).tolist()
    failed = subprocess.run([tmp_path / "a"], capture_output=True, text=True)
    assert failed.returncode == 1 and "hipMalloc" in failed.stderr, "every call's status is looked at"
