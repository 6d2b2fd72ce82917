"""A fixture for tests of how many processes import Triton: those that capture started."""

import subprocess

import pytest


@pytest.fixture
def started(monkeypatch):
    """Worker processes of capture, in the order in which they started; none may be left at the end of the test."""
    found = []

    class Counted(subprocess.Popen):
        def __init__(self, command, **options):
            super().__init__(command, **options)
            if "swizzle_sim.capture.worker" in command:
                found.append(self)

    monkeypatch.setattr(subprocess, "Popen", Counted)
    yield found
    assert all(worker.returncode is not None for worker in found), "a worker was left running, or as a zombie"
