"""Is work kept under what it depends on, and does a command that was stopped go on where it was?"""

import dataclasses
import json

import pytest

from swizzle_benchmarks.evidence.paper import jobs, work
from swizzle_benchmarks.evidence.paper.jobs import Job, run_jobs
from swizzle_benchmarks.evidence.paper.searches import arms_job
from swizzle_benchmarks.evidence.paper.settings import Settings
from swizzle_sim.search.history import History
from swizzle_sim.search.judge import Judge
from xcd_model import gpu

CALLS = []


def double(about, folder, say):
    say("doubling")
    CALLS.append(about["n"])
    assert folder.is_dir()
    return {"n": 2 * about["n"]}


def halting(about, folder, say):
    """Stops once half-way, and leaves a note for the next time."""
    note = folder / "half"
    if not note.exists():
        note.write_text("half")
        raise KeyboardInterrupt
    return {"found": note.read_text()}


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SWIZZLE_SIM_PAPER_CACHE", str(tmp_path / "cache"))
    CALLS.clear()
    return tmp_path / "cache"


def job(n, name="double"):
    return Job(name=name, work=double, about={"n": n})


def test_what_is_known_is_not_worked_out_again(cache):
    assert run_jobs([job(3), job(4, "other")], processes=1) == {"double": {"n": 6}, "other": {"n": 8}}
    assert run_jobs([job(3)], processes=1) == {"double": {"n": 6}}
    assert sorted(CALLS) == [3, 4]
    assert run_jobs([job(3)], processes=1, again=True) == {"double": {"n": 6}}
    assert sorted(CALLS) == [3, 3, 4]
    assert not list(cache.glob("*.part"))


def test_stopped_work_finds_its_folder_again():
    asked = Job(name="halting", work=halting, about={})
    with pytest.raises(KeyboardInterrupt):
        run_jobs([asked], processes=1)
    assert run_jobs([asked], processes=1) == {"halting": {"found": "half"}}


def test_processes_give_what_one_gives():
    wanted = [Job(name=f"job {n}", work=double, about={"n": n}) for n in range(2)]
    found = run_jobs(wanted, processes=2)
    assert found == {"job 0": {"n": 0}, "job 1": {"n": 2}}
    assert not CALLS  # done elsewhere
    assert list(run_jobs(wanted[::-1], processes=1)) == ["job 1", "job 0"]


def test_the_key_follows_sizes_constants_and_code_and_nothing_else(monkeypatch):
    usual = job(3).key
    assert job(3, "renamed").key == usual and dataclasses.replace(job(3), seconds=9.0).key == usual
    keys = {usual, job(4).key, dataclasses.replace(job(3), work=halting).key}
    keys |= {Job(name="gpu", work=double, about={"n": 3, "gpu": name}).key for name in ("mi300x", "mi300a")}
    keys.add(dataclasses.replace(job(3), code=("swizzle_sim.pricing.scoring",)).key)
    assert len(keys) == 6
    device = gpu("mi300x")
    about = Job(name="gpu", work=double, about={"n": 3, "gpu": "mi300x"})
    before = about.key
    monkeypatch.setattr(jobs, "gpu", lambda name: dataclasses.replace(device, title="the same by another name"))
    assert about.key == before
    slower = dataclasses.replace(device.hbm, latency_ns=device.hbm.latency_ns + 1)
    monkeypatch.setattr(jobs, "gpu", lambda name: dataclasses.replace(device, hbm=slower))
    assert about.key != before


def test_a_search_that_was_stopped_ends_as_it_would_have_ended(tmp_path, monkeypatch):
    about = json.loads(json.dumps(arms_job(Settings(quick=True), "spmv").about))
    replay, replayed = Judge.replay, []
    monkeypatch.setattr(Judge, "replay", lambda self, look: replayed.append(look.candidate) or replay(self, look))
    whole = work.find(about, tmp_path / "whole", lambda words: None)
    in_all = len(replayed)

    def stop(words):
        if words == "families: 2 of 3":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work.find(about, tmp_path / "stopped", stop)
    with History(tmp_path / "stopped" / "families") as history:
        stored = len(list(history))
    replayed.clear()
    assert work.find(about, tmp_path / "stopped", lambda words: None) == whole
    assert stored and len(replayed) == in_all - stored
    assert whole["families"]["score"]["l2_hit_rate"] == max(
        [whole["launched"]["l2_hit_rate"], *whole["families"]["rates"]]
    )
