"""A fixture for tests of captures that ask nothing of registers: kernels are not compiled, which takes seconds each."""

from dataclasses import asdict

import pytest

from swizzle_sim.capture.occupancy import ARCHS
from xcd_model import Resources


@pytest.fixture
def uncompiled(monkeypatch):
    """Give every kernel the same resources, where ``swizzle_sim.capture`` would ask the compiler."""
    made_up = Resources(threads=256, vgprs=64, lds_bytes=0, instructions_in_flight=2, source="made up")
    of_user_kernel = "swizzle_sim.capture.user_kernel"
    monkeypatch.setattr(f"{of_user_kernel}.check_compiles", lambda launch, arch=None, fits=False: None)
    monkeypatch.setattr(f"{of_user_kernel}.resources_by_arch", lambda launch: {arch: asdict(made_up) for arch in ARCHS})
