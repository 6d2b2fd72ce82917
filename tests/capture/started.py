"""A fixture for tests of how many processes run users' files: those that capture started."""

import pytest

from swizzle_sim.capture import process


@pytest.fixture
def started(monkeypatch):
    """Worker processes of capture, in the order in which they started; none may be left at the end of the test."""
    found, start = [], process.start_worker

    def counted(module, *given, **more):
        worker = start(module, *given, **more)
        if module == process.WORKER:
            found.append(worker)
        return worker

    monkeypatch.setattr(process, "start_worker", counted)
    yield found
    assert all(worker.returncode is not None for worker in found), "a worker was left running, or as a zombie"
