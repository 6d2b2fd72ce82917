"""Do sweeps keep what they have, go on, and survive a worker that dies?"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import swizzle_sim
from swizzle_sim.language import Swizzle, family
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.rewrite.price import evaluate_as_compiled
from swizzle_sim.search.fleet import launches_in, points_of, rows_of
from swizzle_sim.search.jobs import PointStore, run_points
from swizzle_sim.search.sweep import evaluate, hurts, read_sizes, size_points
from swizzle_sim.search.what_if import hypothetical, read_changes, what_if
from tests.search.slow_points import judged_slowly, marked
from xcd_model import xcd_of
from xcd_model.errors import CompileError, LanguageError, RunError, SearchError, SpecError, UnknownName

ROOT = Path(__file__).parents[2]


def grouped():
    return Swizzle.parse(family("contiguous+group_m(size=4)"), name="grouped")


def test_points_are_scores(small, mi300x):
    points = size_points(small, mi300x, [grouped()], ["M", "N"], [512, 1024], "lockstep")
    with PointStore(None) as store:
        rows = run_points(points, evaluate, store, backend="processes", jobs=2)
        assert len(store) == 2
    scorer = Scorer(small, mi300x, replay="lockstep")
    assert rows[1]["launched"]["l2_hit_rate"] == scorer.baseline.l2_hit_rate
    assert rows[1]["swizzles"]["grouped"]["l2_hit_rate"] == scorer.score(grouped()).l2_hit_rate
    assert rows[0]["launched"]["l2_hit_rate"] != rows[1]["launched"]["l2_hit_rate"]


def test_a_point_is_compiled_for_its_gpu_and_falls_back_where_a_swizzle_cannot_be(small, mi300x, monkeypatch):
    asked = []

    def compiled(kernel, device):
        asked.append(device.arch)
        return kernel

    def refused(scorer, swizzle, **how):
        asked.append(swizzle.name)
        raise CompileError("no compiler here")

    monkeypatch.setattr("swizzle_sim.capture.occupancy.compiled_for", compiled)
    monkeypatch.setattr("swizzle_sim.rewrite.price.score_as_compiled", refused)
    monkeypatch.setattr("swizzle_sim.search.sweep.triton_version", lambda: "3.6.0")
    (plain,) = size_points(small, mi300x, [grouped()], ["M"], [512], "lockstep")
    (point,) = size_points(small, mi300x, [grouped()], ["M"], [512], "lockstep", compile=True)
    assert point == plain | {"compile": "3.6.0"}  # what another Triton compiled is another point
    assert evaluate_as_compiled(point) == evaluate(plain) and asked == ["gfx942", "grouped"]


def test_a_failure_is_reported_and_the_rest_goes_on(small, mi300x):
    naive = Swizzle.parse(family("contiguous_naive"), name="naive")
    points = size_points(small, mi300x, [naive], ["M"], [0, 192], "lockstep")  # 3 x 16 tiles: no multiple needed
    points += size_points(small, mi300x, [naive], ["M", "N"], [192], "lockstep")  # 9 tiles on 8 XCDs
    with PointStore(None) as store:
        rows = run_points(points, evaluate, store, backend="serial")
    assert "M = 0" in rows[0]["error"] and rows[0]["launched"] is None
    assert "error" not in rows[1]["swizzles"]["naive"] and "collide" not in rows[1]["error"]
    assert "both compute tile" in rows[2]["swizzles"]["naive"]["error"]
    assert hurts(["a", "b", "c"], rows) == [one for one in hurts(["a", "b", "c"], rows) if one.at == "b"]


def test_where_a_swizzle_hurts():
    def row(launched, swizzled):
        return {"launched": {"l2_hit_rate": launched}, "swizzles": {"s": {"l2_hit_rate": swizzled}}}

    found = hurts(["1", "2", "3"], [row(0.5, 0.6), row(0.5, 0.4), row(0.5, 0.2)])
    assert [(one.at, round(one.points)) for one in found] == [("3", 30), ("2", 10)]


def test_a_stopped_sweep_goes_on(tmp_path):
    points = [{"n": n, "folder": str(tmp_path), "sleep_s": 0.0} for n in range(6)]

    def stop(point, row, done, total):
        if done == 3:
            raise KeyboardInterrupt

    with PointStore(tmp_path / "sweep") as store, pytest.raises(KeyboardInterrupt):
        run_points(points, marked, store, backend="serial", on_point=stop)
    with PointStore(tmp_path / "sweep", resume=True) as store:
        assert len(store) == 3
        rows = run_points(points, marked, store, backend="serial")
    assert [row["square"] for row in rows] == [n * n for n in range(6)]
    assert len(list(tmp_path.glob("ran-*"))) == 6  # nothing twice
    with pytest.raises(RunError, match="never overwritten"):
        PointStore(tmp_path / "sweep")
    with pytest.raises(RunError, match="no run to go on with"):
        PointStore(tmp_path / "none", resume=True)


def test_sizes_as_typed(small, mi300x):
    assert read_sizes("1024,2048") == [1024, 2048]
    assert read_sizes("1024..4096 step 1024") == [1024, 2048, 3072, 4096]
    assert read_sizes("powers 512..2048") == [512, 1024, 2048]
    with pytest.raises(LanguageError, match="9 is more than 1"):
        read_sizes("9..1")
    with pytest.raises(LanguageError, match=r"--values '1024\.\.': write 1024,2048, or low\.\.high"):
        read_sizes("1024..")
    with pytest.raises(UnknownName, match="size of kernel gemm"):
        size_points(small, mi300x, [], ["Q"], [1], "lockstep")


def test_a_scheduler_that_does_not_answer():
    with PointStore(None) as store:
        with pytest.raises(SearchError, match="no answer within 1 s") as error:
            run_points([{}], marked, store, backend="dask", scheduler="tcp://127.0.0.1:9", timeout_s=1)
        assert error.value.code == "scheduler"
        with pytest.raises(SearchError, match="belong together"):
            run_points([{}], marked, store, backend="dask")
        with pytest.raises(UnknownName, match="backend"):
            run_points([{}], marked, store, backend="threads")


@pytest.fixture
def cluster(tmp_path):
    """A Dask scheduler and two workers, each a process of its own."""
    pytest.importorskip("distributed")
    file = tmp_path / "scheduler.json"
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": env, "cwd": tmp_path}
    made = [subprocess.Popen([*command, "--no-dashboard", "--scheduler-file", str(file)], **quiet)]
    address = wait_for(lambda: address_in(file))
    worker = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--nthreads", "1", "--no-nanny"]
    made += [subprocess.Popen([*worker, "--no-dashboard"], **quiet) for _ in range(2)]
    yield address, made[1:]
    for process in reversed(made):
        process.kill()
        process.wait()


LOADED_S = 120.0  # for a process to start on a machine that is busy with others


def wait_for(value, timeout_s=LOADED_S):
    end = time.monotonic() + timeout_s
    while not (found := value()):
        assert time.monotonic() < end, "took too long"
        time.sleep(0.05)
    return found


def address_in(file):
    """Address of the scheduler; None until the file that it writes is there and whole."""
    try:
        return json.loads(file.read_text())["address"]
    except (OSError, ValueError, KeyError):
        return None


@pytest.mark.filterwarnings("ignore")  # Dask logs the loss of the worker
def test_a_worker_dies_and_the_fleet_completes_and_repeats_nothing(cluster, tmp_path, mi300x):
    from distributed import Client

    address, workers = cluster
    with Client(address) as client:
        client.wait_for_workers(2, timeout=LOADED_S)
    table = tmp_path / "launches.csv"
    table.write_text(
        "kernel,M,N\n" + "".join(f"softmax,{64 * n},256\n" for n in (*range(1, 21), 1))
    )  # one of them twice
    how = {"replay": "lockstep", "orders": 2, "compile": False}
    points = points_of(launches_in(str(table)), [mi300x], [], **how)
    assert len(points) == 20
    seen, at_work, killed = [], set(), []

    def kill_one(point, row, done, total):
        """Kill a worker as soon as both have done some, whichever a loaded machine lets begin first."""
        seen.append(point["problem"]["M"])
        at_work.add(row["worker"])
        if len(at_work) == 2 and not killed:
            killed.append(next(worker for worker in workers if worker.pid == row["worker"]))
            killed[0].kill()
            assert done < total  # the other has to finish alone

    asked = [point for point, _ in points.values()]
    with PointStore(tmp_path / "fleet") as store:
        options = {"backend": "dask", "scheduler": address, "timeout_s": LOADED_S, "on_point": kill_one}
        rows = run_points(asked, judged_slowly, store, **options)
    (dead,) = killed
    (alive,) = (worker for worker in workers if worker is not dead)
    assert dead.wait(LOADED_S) != 0 and alive.poll() is None
    assert sorted(seen) == [64 * n for n in range(1, 21)]  # each counted once
    assert len({row["worker"] for row in rows}) == 2 and not any(row["error"] for row in rows)
    with PointStore(None) as store:  # one worker of one thread is left: it judges, and this process does not
        (alone,) = run_points([{**asked[0], "orders": 1}], judged_slowly, store, **{**options, "on_point": None})
    assert alone["worker"] == alive.pid
    with PointStore(tmp_path / "fleet", resume=True) as store:
        again = run_points(asked, lambda point: pytest.fail("judged again"), store, backend="serial")
    assert again == rows
    found = rows_of(points, rows)
    assert {row["calls"] for row in found} == {1.0, 2.0} and sum(row["recorded"] for row in found) == 21


# ---- Are hypothetical GPUs valid ones, and is the capacity curve what replays of each cache give?
def test_changes_are_made_together(mi300x):
    made = swizzle_sim.what_if(mi300x, {"l2.size_bytes": 8 * 2**20, "l2.ways": 32, "xcds": 16})
    assert (made.l2.size_bytes, made.l2.ways, made.xcds, made.cus) == (8 * 2**20, 32, 16, 16 * 38)
    assert made.mall == mi300x.mall and "l2.size_bytes" not in made.facts and "l2.line_bytes" in made.facts
    assert what_if(mi300x, {}) is mi300x


def test_dispatch_is_a_number_of_the_gpu(mi300x):
    chunked = what_if(mi300x, {"dispatch": "chunked"})
    dealt = [xcd_of(608, one).tolist() for one in (chunked, what_if(chunked, {"dispatch_chunk": 2}))]
    assert [xcd[:3] + xcd[38:40] for xcd in dealt] == [[0, 0, 0, 1, 1], [0, 0, 1, 3, 3]]
    assert xcd_of(608, what_if(mi300x, {"dispatch": "one_after_another"})).tolist() == sorted(76 * list(range(8)))
    with pytest.raises(SpecError, match="dispatch = 'tree' is not known; accepted: round_robin, chunked"):
        what_if(mi300x, {"dispatch": "tree"})


def test_words(mi300x):
    assert read_changes(["l2.size_bytes=8MiB, 16MiB", "xcds=4"]) == {"l2.size_bytes": [2**23, 2**24], "xcds": [4]}
    found = [(one["xcds"], gpu.xcds) for one, gpu in hypothetical(mi300x, read_changes(["xcds=4,16"]))]
    assert found == [(4, 4), (16, 16)]
    for word in ("xcds", "=4", "xcds=", "xcds=4,"):
        with pytest.raises(SpecError, match="key=value"):
            read_changes([word])
    with pytest.raises(SpecError, match="twice"):
        read_changes(["xcds=4", "xcds=8"])


@pytest.mark.parametrize(
    ("changes", "error", "told"),
    [
        ({"l2.size": 1}, UnknownName, "did you mean l2.size_bytes"),
        ({"facts": 1}, UnknownName, "facts"),
        ({"xcds": 0}, SpecError, "xcds = 0"),
        ({"l2.size_bytes": 4_000_000}, SpecError, "nearest sizes"),
        ({"clock_mhz": "fast"}, SpecError, "clock_mhz"),
    ],
)
def test_a_gpu_that_cannot_be(mi300x, changes, error, told):
    with pytest.raises(error, match=told):
        what_if(mi300x, changes)
