"""Is a user's kernel that of its file: for a check in a bundle, and where `import` has only the bundle?"""

import dataclasses
import json

import pytest

from swizzle_sim.capture import user_kernel, workload
from swizzle_sim.hardware.node.manifest import digest
from swizzle_sim.hardware.runs import predictor
from swizzle_sim.workload.kernels import kernel
from tests.hardware.conftest import DATA
from xcd_model.errors import UnknownName

MINE = '''\
"""A kernel of mine: the name of another one, its own source."""
from swizzle_sim import Kernel

other = Kernel(something_else, sizes={})
mine = Kernel(my_kernel, sizes={"M": 64})
'''
SMALL = {"M": 256, "N": 256, "K": 64, "BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 64}


def bundled(folder, source, **changes):
    """Manifest of a bundle with this source, which is written to its folder."""
    (folder / "kernel_original.py").write_text(source)
    found = json.loads((DATA / "h200" / "gemm" / "manifest.json").read_text())
    about = {"run": "", "replay": "lockstep", "source_sha256": digest(source.encode())}
    return {**found, **about, "gpu": {"name": "mi300x", "xcds": 8}, **changes}


@pytest.fixture
def loaded(monkeypatch):
    """Names that a file was asked for; a small GEMM stands for what the capture would give."""
    names = []

    def load(name, sizes, arch):
        names.append((name, dict(sizes), arch))
        return kernel("gemm", **SMALL)

    monkeypatch.setattr(user_kernel, "load", load)
    return names


@pytest.mark.parametrize("name", ["mine", "gemm"])
def test_a_users_kernel_comes_from_the_source_in_the_bundle(tmp_path, loaded, name):
    """Also where it has the name of a suite kernel: its source is another."""
    about = bundled(tmp_path, MINE, kernel=name, function="my_kernel", problem={"M": 64})
    found = predictor(tmp_path, about)(None)
    assert loaded == [(f"{tmp_path / 'kernel_original.py'}:mine", {"M": 64}, "gfx942")]
    assert found["kind"] == "simulated" and found["l2_requests"] > 0


def test_a_suite_kernel_comes_from_the_registry(tmp_path, loaded):
    about = bundled(tmp_path, kernel("gemm").launch.path.read_text(), problem=SMALL)
    assert predictor(tmp_path, about)(None)["l2_requests"] > 0 and loaded == []


def test_a_kernel_of_nowhere_is_refused_by_name(tmp_path, loaded):
    about = bundled(tmp_path, MINE, kernel="mine", function="unknown")
    with pytest.raises(UnknownName, match="mine"):
        predictor(tmp_path, about)(None)


def test_a_bundle_is_checked_at_small_sizes_of_the_users_own_file(monkeypatch):
    """Its name says nothing: a suite kernel may have the same."""
    asked = []
    monkeypatch.setattr(workload, "_declared", lambda name, sizes: asked.append((name, dict(sizes))))
    mine = dataclasses.replace(kernel("gemm", **SMALL), file="mine.py:other")
    workload.of_kernel(mine).at({"M": 128})
    assert asked == [("mine.py:other", {"M": 128})]
    small = workload.of_kernel(kernel("gemm", **SMALL)).at({"M": 128})
    assert small.name == "gemm" and small.problem["M"] == 128 and len(asked) == 1
