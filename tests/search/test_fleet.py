"""Is each launch of a fleet judged once, by its content, and what is wrong with one said while the others go on?"""

import json

import pandas as pd
import pytest

from swizzle_sim.capture.recorder import FORMAT, VERSION
from swizzle_sim.search.fleet import launches_in, points_of, rows_of, write_rows
from swizzle_sim.search.history import parquet_of
from xcd_model.errors import MissingExtra, SearchError, SizeError, UnknownName

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
