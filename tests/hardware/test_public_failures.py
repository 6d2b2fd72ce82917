"""Failures of profilers in public reports: does a bundle go on as `docs/hardware.md` says? All are replayed."""

import shutil
from pathlib import Path

import pytest

from tests.capture.same_trace import needs_triton
from tests.hardware.conftest import H200, bundled
from tests.hardware.test_launcher import COMPILER, library  # noqa: F401  a fixture

pytestmark = needs_triton
COUNT = ("--no-time",)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """Bundle of two workgroups, which the interpreter launches often."""
    return bundled(tmp_path_factory.mktemp("tiny") / "bundle", specs=["group_m(size=2)"], M=32, N=16)


@pytest.fixture
def bundle(tiny, tmp_path):
    """Copy of it."""
    return Path(shutil.copytree(tiny, tmp_path / "bundle"))


def entry(done, name="candidate_1"):
    return done.result["candidates"][name]


@pytest.mark.parametrize("how", ["hang", "abort", "no-gpu"])
def test_a_profiler_that_fails_under_pytorch_counts_the_launcher(bundle, confirm, how):
    """rocprofiler-sdk 66 and 93, rocm-aic 149: with PyTorch in the process it hangs, aborts or sees no GPU."""
    done = confirm(bundle, *COUNT, rocprofv3={"torch": how, "hits": {"candidate_1": 900}})
    assert done.code == 0, done.err
    assert done.result["profiler"]["launched_by"] == "launcher"
    assert entry(done)["counters"]["TCC_HIT_sum"]["value"] == 900
    assert not list(bundle.rglob("*.hsaco")), "code objects and inputs are gone once they were counted"


def test_where_the_launcher_fails_pytorch_launches(bundle, confirm):
    """No libamdhip64 here: the launcher says so, and the path through PyTorch is taken."""
    done = confirm(bundle, *COUNT, rocprofv3={"run": True})
    assert done.code == 0, done.err
    assert done.result["profiler"]["launched_by"] == "torch"
    assert any("nothing counted, launched by launcher" in note for note in done.result["notes"])


@pytest.mark.skipif(COMPILER is None, reason="no C compiler")
def test_outputs_under_the_profiler_are_compared(bundle, confirm, library, monkeypatch):  # noqa: F811
    """The stand-in's library launches nothing: outputs are those of the poison, and the result says it."""
    monkeypatch.setenv("LD_LIBRARY_PATH", str(library.parent))
    done = confirm(bundle, *COUNT, rocprofv3={"run": True})
    assert done.result["profiler"]["launched_by"] == "launcher"
    assert any("outputs under the profiler are not those that were checked" in note for note in done.result["notes"])


def test_nothing_counts_and_the_reasons_are_said(bundle, confirm):
    """ROCm 6.2 has no --pmc on its command line."""
    done = confirm(bundle, *COUNT, rocprofv3={"pmc": False})
    assert done.code == 1 and "counters" not in entry(done)
    assert any(note.startswith("nothing is counted") for note in done.result["notes"])


def test_zeros_are_no_hit_rate(bundle, confirm):
    """rocm-systems 5683, rocprofiler-sdk 57."""
    done = confirm(bundle, *COUNT, rocprofv3={"zeros": True})
    assert "0.00 %" not in done.out and "all counters are zero" in done.out


def test_multiplexed_counters_are_counted_again_two_at_a_time(bundle, confirm):
    done = confirm(bundle, *COUNT, rocprofv3={"multiplex": True, "hits": {"candidate_1": 900}})
    assert entry(done)["passes"][0]["state"] == "doubtful"
    assert entry(done)["counters"]["TCC_HIT_sum"]["value"] == 900 and "90.00 %" in done.out
    assert "doubt" not in done.out


def test_rocpd_files_are_read_where_no_csv_is(bundle, confirm):
    done = confirm(bundle, *COUNT, rocprofv3={"rocpd": True, "hits": {"candidate_1": 900}})
    assert done.code == 0 and "90.00 %" in done.out


def test_a_probe_says_in_a_minute_whether_anything_will_be_counted(bundle, confirm):
    done = confirm(bundle, "--probe")
    assert done.code == 0 and "rocprofv3 counts" in done.err and done.result["state"] == "probed"
    assert confirm(bundle, "--probe", rocprofv3={"empty_on": "SQ_WAVES"}).code == 1


def test_counters_without_permission(tmp_path, confirm):
    """ERR_NVGPUCTRPERM."""
    done = confirm(
        bundled(tmp_path / "nvidia", "h200", specs=["group_m(size=2)"]), *COUNT, gpu=H200, ncu={"permitted": False}
    )
    assert done.code == 1 and any("ERR_NVGPUCTRPERM" in note for note in done.result["notes"])
