"""Does a measurement on an NVIDIA GPU become rows, whatever part of it fails? A program stands in for the profiler."""

import csv
import json
import shlex
import sys
from pathlib import Path

import pytest

from swizzle_benchmarks.lab import counters
from swizzle_benchmarks.lab.counters import COUNTERS
from swizzle_benchmarks.validation import contributed
from swizzle_benchmarks.validation.contributed import ContributionError
from swizzle_benchmarks.validation.rows import DATA, Row
from swizzle_benchmarks.validation.variants import predict
from swizzle_benchmarks.validation.workloads import h200, orders
from swizzle_benchmarks.validation.workloads.from_row import workload
from xcd_model import gpu, workgroups_per_cu

PROBLEM = {"M": 1024, "N": 1024, "BM": 64, "BN": 64}
COUNTS = dict.fromkeys(COUNTERS, 8.0) | {
    "dram__bytes_read.sum": 1_073_741_824.0,
    "gpu__time_duration.sum": 544_736.0,
    "lts__t_sectors_srcunit_tex_op_read_lookup_hit.sum": 2.0,
    "launch__registers_per_thread": 32.0,
    "launch__shared_mem_per_block": 17408.0,
}
STAND_IN = '''\
"""Takes ncu's words, leaves its table and prints what the launched program would."""
import json, sys, time
from pathlib import Path
counts, made, behaviour = {counts}, {made}, {behaviour!r}
words = sys.argv[1:]
asked = words[words.index("--metrics") + 1].split(",")
table = Path(words[words.index("--log-file") + 1])
orders = json.loads(Path(words[-1]).read_text())["orders"]
if behaviour == "hangs":
    time.sleep(60)
if behaviour == "no counters" and len(asked) > 10:
    table.write_text("==ERROR== ERR_NVGPUCTRPERM\\n")
    sys.exit(9)
print('{{"gpu": "NVIDIA H200", "compiler": "triton 3.6"}}')
print("==PROF== Profiling")
for order in orders[:made]:
    print(json.dumps({{"order": order, "right": order != behaviour}}))
cells = ",".join('"%s"' % format(counts[name], ",.0f") for name in asked)
lines = ['"%d","1","fidelity_transpose","(256, 1, 1)","0",%s' % (i, cells) for i in range(made)]
head = '"ID","Process ID","Kernel Name","Grid Size","Device",' + ",".join('"%s"' % name for name in asked)
units = '"","","","","",' + ",".join('""' for _ in asked)
table.write_text("\\n".join(["==PROF== Connected", head, units, *lines]) + "\\n")
sys.exit(0 if made == len(orders) and behaviour not in orders else 1)
'''


@pytest.fixture
def ncu(tmp_path, monkeypatch):
    """Make a stand-in that counts so many launches and behaves as told."""
    monkeypatch.setattr(counters, "_driver", lambda: "580.1")

    def make(made, behaviour=""):
        path, script = tmp_path / "ncu", tmp_path / "ncu.py"
        script.write_text(STAND_IN.format(counts=COUNTS, made=made, behaviour=behaviour))
        words = shlex.join([sys.executable, str(script)])
        path.write_text(f'#!/bin/sh\nexec {words} "$@"\n')  # a path with blanks cannot follow #!
        path.chmod(0o755)
        return str(path)

    return make


def measured(tmp_path, ncu, *words):
    """Rows written by one command, and what it said went wrong."""
    out = tmp_path / "rows.csv"
    try:
        counters.counters([*words, "--ncu", ncu, "--out", str(out)])
        said = ""
    except SystemExit as ended:
        said = str(ended.code)
    return [Row(**line) for line in contributed.read(out)], said


TYPED = ("--kernel", "transpose", "--sizes", "M=1024,N=1024,BM=64,BN=64", "--orders", "row,scatter")


def test_a_profiler_run_becomes_rows_that_can_be_replayed(tmp_path, ncu):
    rows, said = measured(tmp_path, ncu(2), *TYPED)
    assert said == "" and len(rows) == 10 and {row.gpu for row in rows} == {"h200"}
    by_quantity = {row.quantity: row.measured for row in rows if row.order == "scatter"}
    assert by_quantity["dram_read_bytes"] == 1_073_741_824
    assert by_quantity["time_us"] == pytest.approx(544.736)
    assert by_quantity["l2_read_hit_pct"] == 25
    assert "driver 580.1" in rows[0].source and "FOLDER/table.csv" in rows[0].source
    assert predict(rows[0], "lockstep", gpu("h200"))["hbm_read_bytes"] == 1024 * 1024 * 4
    raw = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    assert [one["order"] for one in raw] == ["row", "scatter"] and raw[0]["counters"] == COUNTS


def test_a_run_that_breaks_off_keeps_what_it_counted(tmp_path, ncu):
    rows, said = measured(tmp_path, ncu(1), *TYPED)
    assert {row.order for row in rows} == {"row"} and "nothing of scatter" in said and "status 1" in said


def test_a_wrong_result_makes_no_row(tmp_path, ncu):
    rows, said = measured(tmp_path, ncu(2, "row"), *TYPED)
    assert {row.order for row in rows} == {"scatter"} and "nothing of row" in said


def test_without_counters_of_the_caches_memory_and_time_remain(tmp_path, ncu):
    rows, said = measured(tmp_path, ncu(2, "no counters"), *TYPED)
    assert {row.quantity for row in rows} == {"dram_read_bytes", "dram_write_bytes", "time_us"}
    assert "without" in said and "counters" in said


def test_a_run_that_hangs_is_killed_and_the_next_goes_on(tmp_path, ncu):
    rows, said = measured(tmp_path, ncu(2, "hangs"), *TYPED, "--limit", "0.5")
    assert rows == [] and "hung" in said
    rows, _ = measured(tmp_path, ncu(2), *TYPED)
    assert len(rows) == 10


def test_jobs_for_which_no_time_is_left_are_told(tmp_path, ncu):
    rows, said = measured(tmp_path, ncu(2), *TYPED, "--minutes", "0.1")
    assert rows == [] and "no time left" in said


def test_where_the_profiler_does_not_work_the_rest_is_given_up(tmp_path, ncu):
    """Each failure costs a minute of somebody's GPU."""
    words = ["transpose M=1024,N=1024,BM=64,BN=64 row", "transpose M=2048,N=1024,BM=64,BN=64 row"] * 2
    (tmp_path / "list.txt").write_text("\n".join(words))
    rows, said = measured(tmp_path, str(tmp_path / "no-such-ncu"), "--list", str(tmp_path / "list.txt"))
    assert rows == [] and "4 of 4 jobs incomplete" in said
    assert said.count("missing") == 2 and said.count("not tried after 2 failures") == 2


def test_every_job_of_the_hypotheses_can_be_replayed():
    """Sizes are whole tiles, orders are permutations, and a workgroup fits an SM."""
    jobs = list(counters.read_list(DATA / "h200_hypotheses.txt"))
    assert len(jobs) >= 15
    seen = set()
    for job in jobs:
        size, shape = job["problem"], h200.KERNELS[job["kernel"]]
        rows, cols = shape.tiles(size)
        assert all(size[side] % size[block] == 0 for side, block in (("M", "BM"), ("N", "BN")) if block in size)
        for order in job["orders"]:
            assert len(set(orders.tiles_of(order, rows, cols, 1).tolist())) == rows * cols, job
            assert (job["kernel"], str(size), order) not in seen
            seen.add((job["kernel"], str(size), order))
        about = {"gpu": "h200", "quantity": "time_us", "unit": "us", "measured": 1, "low": 1, "high": 1, "source": "-"}
        resources = {"registers": 64, "shared_bytes": 0}
        row = Row(id="x/1", kernel=f"h200_{job['kernel']}", problem=size, order="row", resources=resources, **about)
        assert workgroups_per_cu(workload(row).resources, gpu("h200")) >= 1


@pytest.mark.parametrize("line", ["gemm M=1", "conv M=1,N=1 row", "gemm M=1,N row", "gemm M=a row"])
def test_a_list_is_refused_with_what_it_may_hold(tmp_path, line):
    (tmp_path / "list.txt").write_text(f"# a comment\n{line}\n")
    with pytest.raises(ContributionError, match=r"NAME=INTEGER"):
        list(counters.read_list(tmp_path / "list.txt"))


def test_dry_run_and_a_node_without_a_driver(tmp_path, capsys, monkeypatch):
    counters.counters([*TYPED, "--ncu", "ncu", "--dry-run"])
    words = shlex.split(capsys.readouterr().out)
    assert words[0] == "ncu" and "swizzle_benchmarks.lab.nvidia_launch" in words
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SystemExit, match="no driver"):
        counters.counters([*TYPED, "--out", str(tmp_path / "rows.csv")])
    assert not Path(tmp_path / "rows.csv").exists()


def test_the_table_of_the_h200_is_what_is_rerun_by_default():
    jobs = list(counters.jobs(None, "", ""))
    with (DATA / "h200_calibration.csv").open(newline="") as file:
        assert sum(len(job["orders"]) for job in jobs) == len(list(csv.DictReader(file)))
