"""A fixture for tests of how many processes run users' files: those that capture started."""

import subprocess

import pytest

from swizzle_sim.capture import process


@pytest.fixture
def started(monkeypatch):
    """Worker processes of capture, in the order in which they started; none may be left at the end of the test."""
    found, start = [], subprocess.Popen

    def counted(args, **more):
        worker = start(args, **more)
        if process.WORKER in args:
            found.append(worker)
        return worker

    monkeypatch.setattr(subprocess, "Popen", counted)
    yield found
    assert all(worker.returncode is not None for worker in found), "a worker was left running, or as a zombie"
