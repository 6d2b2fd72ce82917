"""Settings of every test folder.

Hypothesis measures no time, so a loaded machine fails nothing; commands compile kernels only where a test asks.
"""

import gc
import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from xcd_model import gpu

os.environ["SWIZZLE_SIM_COMPILE"] = "0"  # a compile takes seconds: tests that look at its figures type --compile
os.environ["SWIZZLE_SIM_REPORT"] = "0"  # so does a report: tests that look at it type --report

settings.register_profile("swizzle_sim", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("swizzle_sim")


def pytest_collection_finish():
    """Look for garbage less often, and not among what was imported and collected: a tenth of the tests' time."""
    _draw()
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


@settings(max_examples=1, database=None)
@given(st.none())
def _draw(_):
    """Before Hypothesis looks, once, for who holds its random numbers: 6.100 warns where what is frozen does."""


@pytest.fixture(scope="session")
def mi300x():
    return gpu("mi300x")


@pytest.fixture
def typed(monkeypatch, capsys, tmp_path):
    """Run ``swizzle-sim`` with the given words in an empty folder; gives exit status, stdout and stderr."""
    from tests.in_process import runner

    return runner(monkeypatch, capsys, tmp_path)


@pytest.fixture
def sketched(monkeypatch):
    """Empty figures in reports, and no PNG files: drawing takes longer than all the rest."""
    monkeypatch.setattr("swizzle_sim.report.pictures.files", lambda *given: {})
    monkeypatch.setattr(
        "swizzle_sim.report.pictures.inline_svg", lambda figure, name, theme: f'<svg id="{name}"></svg>'
    )
