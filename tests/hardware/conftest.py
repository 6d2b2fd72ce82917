"""A small bundle made once, and its confirmation on stand-ins for PyTorch and the profilers."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from swizzle_sim.hardware.bundle import Finalist, make_bundle
from swizzle_sim.language import Swizzle, family
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.workload.kernels import kernel
from xcd_model import gpu

HERE = Path(__file__).parent
STAND_IN = HERE / "stand_in"
DATA = HERE / "data"
SIZES = {"M": 48, "N": 48, "K": 16, "BLOCK_M": 16, "BLOCK_N": 16, "BLOCK_K": 16}
H200 = {"name": "NVIDIA H200", "hip": None, "cuda": "13.0", "multi_processor_count": 132}


def small(name="mi300x", specs=("contiguous", "group_m(size=2)"), **sizes):
    """Arguments of a small bundle: kernel, device, finalists, baseline."""
    workload, device = kernel("gemm", **(SIZES | sizes)), gpu(name)
    scorer = Scorer(workload, device, replay="lockstep")
    found = [Finalist(name=s, source=family(s), score=scorer.score(Swizzle.parse(family(s)))) for s in specs]
    return workload, device, found, scorer.baseline


def bundled(folder, *args, **how):
    """Folder of the bundle of `small`."""
    workload, device, found, baseline = small(*args, **how)
    make_bundle(workload, device, found, folder, baseline=baseline, check=False)
    return folder


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """Folder of a bundle for a MI300X, never to be changed."""
    return bundled(tmp_path_factory.mktemp("made") / "bundle")


@pytest.fixture
def bundle(made, tmp_path):
    """Copy of it."""
    return Path(shutil.copytree(made, tmp_path / "bundle"))


class Done(NamedTuple):
    code: int
    out: str
    err: str
    result: dict | None


@pytest.fixture
def confirm():
    """Run a bundle's ``confirm.py`` with the stand-ins."""

    def run(folder, *words, rocprofv3=None, ncu=None, gpu=None, path=True):
        env = {name: value for name, value in os.environ.items() if not name.startswith("STAND_IN")}
        env |= {"TRITON_INTERPRET": "1", "PYTHONPATH": str(STAND_IN), "PYTHONDONTWRITEBYTECODE": "1"}
        env["STAND_IN_ROCPROFV3"] = json.dumps({"run": False, **(rocprofv3 or {})})
        env["STAND_IN_NCU"] = json.dumps({"run": False, **(ncu or {})})
        env["STAND_IN_GPU"] = json.dumps(gpu or {})
        if path:
            # this Python stands before others: a launcher of theirs may take longer than what it launches
            env["PATH"] = os.pathsep.join([str(STAND_IN / "bin"), str(Path(sys.executable).parent), env["PATH"]])
        command = [sys.executable, str(folder / "confirm.py"), "--flush-mib", "1", *words]
        done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=120)
        assert "Traceback" not in done.stderr, done.stderr
        result = folder / "result.json"
        return Done(
            done.returncode, done.stdout, done.stderr, json.loads(result.read_text()) if result.exists() else None
        )

    return run
