"""Is each launch of a fleet judged once, by its content, and what is wrong with one said while the others go on?"""

import json

import numpy as np
import pandas as pd
import pytest

from swizzle_sim.capture.recorder import FORMAT, VERSION
from swizzle_sim.capture.recording import launched_in_order
from swizzle_sim.pricing.replaying import Replayer
from swizzle_sim.search.fleet import launches_in, moved, placed, points_of, rows_of, write_rows
from swizzle_sim.search.history import parquet_of
from swizzle_sim.workload.kernels import kernel
from xcd_model.errors import CaptureError, MissingExtra, SearchError, SizeError, UnknownName
from xcd_model.replay.plan import replay_launches
from xcd_model.replay.timed import replay_timed

SOURCE = "import triton\n@triton.jit\ndef add(x): pass"
LAUNCH = {"grid": [4], "arguments": {"x": 1}, "constexprs": {}, "options": {}, "problems": []}


def recording(*launches, **more):
    made = [{**LAUNCH, "kernel": 0, "count": 1, **one} for one in launches]
    return json.dumps({**more, "format": FORMAT, "format_version": VERSION, "machine": {"gpu": "a"},
                       "kernels": [{"name": "add", "source": SOURCE}], "launches": made})  # fmt: skip


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "table.csv").write_text(
        "kernel,calls,M,N,K\ngemm,3,512,512,64\ngemm,2,512,512,64\nsoftmax,4,64,256,\nnone,1,,,\n"
    )
    return tmp_path


def test_a_launch_is_known_by_its_content(folder, mi300x):
    for name, counts in (("one", (2, 5)), ("two", (7,))):
        made = [{"count": count, "grid": [4 + i]} for i, count in enumerate(counts)]
        (folder / f"{name}.json").write_text(recording(*made, {"grid": [9], "problems": ["a pointer"]}))
    launched = launches_in(str(folder))
    assert [one.problem for one in launched if one.problem] == ["a pointer"] * 2
    points = points_of(launched, [mi300x], [], replay="lockstep", orders=1, compile=False)
    calls = {group[0].name: (len(group), sum(one.calls for one in group)) for _, group in points.values()}
    assert calls["one:add.1"] == (2, 9) and calls["one:add.2"] == (1, 5) and calls["gemm M=512 N=512 K=64"] == (2, 5)
    assert "one.json" not in json.dumps([point for point, _ in points.values()])  # it runs where the file is not
    assert len(launches_in("suite")) > 20 and launches_in("softmax")[0].launch == {"kernel": "softmax", "problem": {}}


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        ("M,N\n1,2\n", SearchError, "t.csv:1: no column kernel"),
        ("kernel,M\ngemm,x\n", SearchError, "t.csv:2: a size is an integer"),
        ("kernel,calls\ngemm,-1\n", SizeError, "t.csv:2: calls = -1"),
        ("kernel\n", SearchError, "no rows"),
    ],
)
def test_a_table_that_is_wrong_is_refused_by_its_line(tmp_path, text, error, said):
    path = tmp_path / "t.csv"
    path.write_text(text)
    with pytest.raises(error, match=said):
        launches_in(str(path))
    with pytest.raises(UnknownName, match="gem"):
        launches_in("gem")


def test_the_command_judges_once_resumes_and_reports(folder, monkeypatch, typed):
    words = ("fleet", "table.csv", "--replay", "lockstep", "--orders", "3", "--no-compile", "--backend", "serial")
    first = typed(*words, "-o", "out")
    assert not first.code, first.err
    page = (folder / "out" / "fleet.html").read_text()
    assert "3 of 3 launches" in page and "gemm M=512" in page and "refresh" not in page  # nothing more comes
    assert "4 launches, 3 different ones" in first.out and "not judged: none: no kernel is called 'none'" in first.out
    monkeypatch.setattr("swizzle_sim.search.fleet.judged_launch", lambda *_, **__: pytest.fail("judged again"))
    again = typed(*words, "--resume", "out", "--json")
    rows = {row["launch"]: row for row in again.json["rows"]}
    assert (rows["gemm M=512 N=512 K=64"]["calls"], rows["gemm M=512 N=512 K=64"]["recorded"]) == (5, 2)
    assert rows["softmax M=64 N=256"]["verdict"] in ("use", "measure", "leave") and rows["none"]["error"]
    kept = pd.read_parquet(folder / "out" / "fleet.parquet")
    assert set(kept["launch"]) == set(rows) and kept["weight"].is_monotonic_decreasing


def test_rows_are_csv_without_pyarrow(tmp_path, monkeypatch):
    def missing(table):
        raise MissingExtra("pyarrow")

    assert parquet_of(pd.DataFrame({"a": [1]}))[:4] == b"PAR1"
    monkeypatch.setattr("swizzle_sim.search.fleet.parquet_of", missing)
    assert write_rows(tmp_path, [{"launch": "a", "weight": 1.0}]) == "fleet.csv"
    assert (tmp_path / "fleet.csv").read_text() == "launch,weight\na,1.0\n"
    assert rows_of({}, []) == []


# ---- Does a launch find in the caches what those before it left there, of the tensors that lay where its own lie?
SIZE = {"M": 512, "N": 512, "K": 512, "BLOCK_M": 128, "BLOCK_N": 128}
MATRIX = {"tensor": {"shape": [512, 512], "strides": [512, 1], "dtype": "fp16"}}
MIB = 1 << 20
A, B, C, D, E = (0x7F00000000 + 2 * i * MIB for i in range(5))
BYTES = 2 * 512 * 512


@pytest.fixture
def in_sequence(tmp_path, monkeypatch, typed):
    """Steps that the command gives of GEMMs that lay at some places, each of A, B and C."""
    work = kernel("gemm", **SIZE)
    monkeypatch.setattr("swizzle_sim.search.fleet.loaded", lambda point, device: work)

    def steps(gpu, *places, json=True):
        order = [f"0 {' '.join(f'{one:x}' for one in at)}" for at in places]
        launch = {"arguments": dict.fromkeys("ABC", MATRIX)}
        (tmp_path / "calls.json").write_text(recording(launch, order=order))
        words = ("fleet", "calls.json", "--sequence", "9", "--gpu", gpu, "--orders", "1", "--no-compile")
        done = typed(*words, "--backend", "serial", *["--json"] * json)
        assert not done.code, done.err
        return done.json["sequence"] if json else done.out

    return steps


def test_a_launch_made_again_is_the_second_of_two(in_sequence, mi300x):
    one = Replayer(kernel("gemm", **SIZE), mi300x)
    order = np.arange(16)

    def once(plan, caches):
        return replay_timed(plan, order, workgroups_per_cu=one.occupancy, issue=one.issue_model, caches=caches)

    twice = [replay_launches([one.plan], once, n)[0] for n in (1, 2)]
    first, second = in_sequence("mi300x", (A, B, C), (A, B, C))
    assert (
        [one["after"]["hbm_read_bytes"] for one in (first, second)]
        == [t.hbm_read_bytes for t in twice]
        == [2 * BYTES, 0]
    )
    assert [one["after"]["time_us"] for one in (first, second)] == [one.time(t).total_us for t in twice]
    assert first["alone"] == first["after"] == second["alone"] and second["after"]["mall_hit_rate"] == 1


def test_a_consumer_finds_what_its_gpu_keeps_of_a_producer(in_sequence):
    chain = (A, B, C), (C, D, E)
    assert [one["after"]["hbm_read_bytes"] for one in in_sequence("mi300x", *chain)] == [2 * BYTES, 2 * BYTES]
    first, second = in_sequence("h100", *chain)
    assert first["after"]["hbm_read_bytes"] - second["after"]["hbm_read_bytes"] == BYTES
    assert "mall_hit_rate" not in second["after"]
    assert "2 launches: " in (said := in_sequence("h100", *chain, json=False)) and "25.0 % of their reads" in said


def test_tensors_lie_as_they_lay_but_for_wide_gaps():
    trace = kernel("gemm", **SIZE).build_trace(128)
    far = 1 << 40
    ((first, second)) = placed([(trace, {"A": 0, "B": 256, "C": far}), (trace, {"A": far + 128, "B": 0, "C": 4 * MIB})])
    assert first["B"] - first["A"] == 2 and second["A"] - first["C"] == 1
    assert (first["C"] - second["C"]) * 128 == 2 * MIB and second["C"] * 128 == 2 * MIB
    there = moved(trace, first)  # A and B, views of one, are one tensor
    assert [(one.base_line, one.n_lines) for one in there.tensors] == [(0, 4098), (first["C"], 4096)]
    assert np.array_equal(np.unique(there.tensor[there.is_write]), [1]) and there.base.max() < first["C"] + 4096
    with pytest.raises(CaptureError, match="where C lay"):
        placed([(trace, {"A": 0, "B": 0})])


@pytest.mark.parametrize("order", [None, [], ["1 1 1 1"], ["0 1"], ["0 1 1 z"], [3]])
def test_an_order_that_is_none_is_refused(order, tmp_path):
    path = tmp_path / "calls.json"
    path.write_text(recording({"arguments": dict.fromkeys("ABC", MATRIX)}, order=order))
    with pytest.raises(CaptureError, match=r"calls.json: (has no order|order = )"):
        launched_in_order(path)
    assert json.loads(path.read_text())["launches"]
