"""Do the readers take what profilers write, in every version, whole or cut, and refuse everything else?"""

import sqlite3
from pathlib import Path

import pytest

from swizzle_sim.hardware.node.counted_launch import chosen
from swizzle_sim.hardware.node.formulas import doubts_of, missing, quantities
from swizzle_sim.hardware.readers import read_profile
from tests.hardware.conftest import DATA
from xcd_model.errors import HardwareError


def copy_of(name, tmp_path, edit):
    path = tmp_path / name
    path.write_text(edit((DATA / name).read_text()))
    return path


def test_counters_with_the_new_header():
    found = read_profile(DATA / "new_counter_collection.csv")
    assert found.format == "rocprofv3 counters" and not found.notes
    gemm = chosen(found.dispatches, "gemm")[1:]
    assert [one.number for one in gemm] == [3]
    assert gemm[0].counters == {"TCC_HIT_sum": 8391570, "TCC_MISS_sum": 16777294}
    assert gemm[0].duration_ns == 214000
    assert found.dispatches[1].counters == {"TCC_HIT_sum": 8391568, "TCC_MISS_sum": 16777296}
    assert gemm[0].about["Accum_VGPR_Count"] == "128"


def test_counters_with_the_old_header_and_columns_found_by_name(tmp_path):
    lines = [line.split(",") for line in (DATA / "old_counter_collection.csv").read_text().splitlines()]
    turned = tmp_path / "turned_counter_collection.csv"
    turned.write_text("".join(",".join(reversed(line)) + "\n" for line in lines))
    for path in (DATA / "old_counter_collection.csv", turned):
        (one,) = read_profile(path).dispatches
        assert one.counters == {"TCC_EA0_RDREQ_sum": 8388760, "TCC_BUBBLE_sum": 8388608}
        assert one.duration_ns is None and chosen([one], "gemm") == [one]


@pytest.mark.parametrize("cut", [1, 30, 100])
def test_a_cut_file_loses_its_last_row_only(tmp_path, cut):
    path = copy_of("new_counter_collection.csv", tmp_path, lambda text: text[:-cut])
    found = read_profile(path)
    assert found.notes == (f"{path.name}: ends within a line, which is left out",)
    assert found.dispatches[-1].counters == {"TCC_HIT_sum": 8391570}


def test_a_damaged_row_is_left_out_and_named(tmp_path):
    path = copy_of("new_counter_collection.csv", tmp_path, lambda text: text.replace("8.39156800e+06", "nonsense"))
    found = read_profile(path)
    assert found.notes == (f"{path.name}:4: incomplete row left out",)
    assert found.dispatches[1].counters == {"TCC_MISS_sum": 16777296}


def test_a_counter_without_sum_adds_its_channels_up(tmp_path):
    path = copy_of(
        "old_counter_collection.csv", tmp_path, lambda text: text.replace("TCC_EA0_RDREQ_sum", "TCC_BUBBLE_sum")
    )
    assert read_profile(path).dispatches[0].counters == {"TCC_BUBBLE_sum": 8388760 + 8388608}


def test_rocprofv3_json():
    (one,) = read_profile(DATA / "rocprofv3.json").dispatches
    assert (one.number, one.kernel, one.duration_ns) == (4, "gemm", 250)
    assert one.counters == {"TCC_HIT": 7, "TCC_MISS_sum": 5}


def test_rocpd(tmp_path):
    path = tmp_path / "run_results.db"
    with sqlite3.connect(path) as db:
        db.execute(
            "CREATE TABLE base (dispatch_id, kernel_name, counter_name, value, start INTEGER, end INTEGER, grid_size, "
            "workgroup_size)"
        )
        rows = [(5, "gemm", "TCC_HIT_sum", 70.0), (5, "gemm", "TCC_MISS_sum", 30.0), (6, "fill", "TCC_HIT_sum", 1.0)]
        db.executemany("INSERT INTO base VALUES (?,?,?,?,100,400,524288,512)", rows)
        db.execute("CREATE VIEW counters_collection AS SELECT * FROM base")
    db.close()
    found = read_profile(path)
    assert [one.kernel for one in found.dispatches] == ["gemm", "fill"]
    assert found.dispatches[0].counters == {"TCC_HIT_sum": 70, "TCC_MISS_sum": 30}
    assert found.dispatches[0].duration_ns == 300
    other = tmp_path / "other.db"
    with sqlite3.connect(other) as db:
        db.execute("CREATE TABLE t (x)")
    db.close()
    with pytest.raises(HardwareError, match="counters_collection"):
        read_profile(other)
    path.write_bytes(path.read_bytes()[:4000])
    with pytest.raises(HardwareError, match="damaged"):
        read_profile(path)


def test_a_table_that_nsight_compute_wrote():
    found = read_profile(DATA / "h200" / "gemm" / "candidate_1_table.csv")
    assert found.format == "Nsight Compute raw page" and not found.notes
    assert len(chosen(found.dispatches, "gemm")) == 4
    one = found.dispatches[-1]
    assert one.counters["dram__bytes_read.sum"] > 1e9
    assert one.counters["launch__registers_per_thread"] == pytest.approx(110, abs=20)
    assert 1e6 < one.duration_ns < 4e6


@pytest.mark.parametrize("unit,scale", [("Kbyte", 1e3), ("Gbyte", 1e9), ("byte", 1), ("furlong", None)])
def test_units_of_nsight_compute(tmp_path, unit, scale):
    path = tmp_path / "table.csv"
    path.write_text(
        f'==PROF== Connected\n"ID","Kernel Name","dram__bytes_read.sum"\n"","","{unit}"\n"0","gemm","1,234.5"\n'
    )
    found = read_profile(path)
    assert found.dispatches[0].counters == ({"dram__bytes_read.sum": 1234.5 * scale} if scale else {})
    assert bool(scale) or "furlong" in found.notes[0], "an unknown one is left out and named"


@pytest.mark.parametrize("text", ["", "a,b\n1,2\n", "{", '{"a": 1}', "[]", '"ID","Kernel Name"\n', "\x00\x01"])
def test_other_files_are_refused(tmp_path, text):
    path = Path(tmp_path / "file")
    path.write_text(text)
    with pytest.raises(HardwareError) as caught:
        read_profile(path)
    assert caught.value.code == "format"
    assert not text.startswith(("[", '{"')) or "neither result.json nor a profiler's file that is known" in str(
        caught.value
    )
    with pytest.raises(HardwareError):
        read_profile(tmp_path / "missing.csv")


def one_pass(**counters):
    return {"dispatches": [{"counters": counters}], "notes": []}


def test_doubts():
    good = one_pass(TCC_HIT_sum=70, TCC_MISS_sum=30, TCC_REQ_sum=100)
    assert doubts_of([good, one_pass(TCC_REQ_sum=100.5)]) == []
    assert "different launches" in doubts_of([good, one_pass(TCC_REQ_sum=180)])[0]
    apart = doubts_of([one_pass(TCC_HIT_sum=70), one_pass(TCC_MISS_sum=30)])
    assert apart == ["TCC_HIT_sum and TCC_MISS_sum come from different passes: their rate is of two runs"]
    assert "rate over 1" in doubts_of([one_pass(TCC_HIT_sum=120, TCC_MISS_sum=3, TCC_REQ_sum=100)])[1]
    assert "all counters are zero" in doubts_of([one_pass(TCC_HIT_sum=0, TCC_MISS_sum=0, TCC_REQ_sum=0)])[0]
    assert (
        "= 5000000, TCC_REQ_sum = 20000000"
        in doubts_of([one_pass(TCC_HIT_sum=0, TCC_MISS_sum=5e6, TCC_REQ_sum=2e7)])[0]
    )
    turns = {"dispatches": [{"counters": {"TCC_HIT_sum": 7}}, {"counters": {"TCC_MISS_sum": 3}}], "notes": []}
    assert "not in each of 2 launches" in doubts_of([turns])[0]
    assert doubts_of([{**one_pass(TCC_HIT_sum=9, TCC_MISS_sum=1, TCC_REQ_sum=99), "state": "doubtful"}, good]) == []
    shaky = {"dispatches": [{"counters": {"TCC_MISS_sum": v}} for v in (1e6, 2e6)], "notes": []}
    assert "over 2 launches" in doubts_of([shaky])[0]


def test_read_bytes_of_an_mi355x_come_from_other_counters_than_an_mi300xs():
    """What a public memory copy of known size gives: the old formula loses half of the reads without a word."""
    old = {"TCC_EA0_RDREQ_sum": 2**23, "TCC_EA0_RDREQ_32B_sum": 0, "TCC_BUBBLE_sum": 0}
    assert quantities(old, "gfx942")["read_bytes"] == 2**29
    assert quantities(old, "gfx950")["read_bytes"] is None
    assert missing(old, "gfx950") == ["no read_bytes without TCC_EA0_RDREQ_128B_sum, TCC_EA0_RDREQ_64B_sum"]
    new = old | {"TCC_EA0_RDREQ_128B_sum": 2**23, "TCC_EA0_RDREQ_64B_sum": 0}
    assert quantities(new, "gfx950")["read_bytes"] == 2**30
    assert (
        "reads of 32, 64 and 128 B are 4194304 of 8388608"
        in doubts_of([one_pass(**new | {"TCC_EA0_RDREQ_128B_sum": 2**22})])[0]
    )
    assert quantities({"TCC_EA_RDREQ_sum": 10, "TCC_EA_RDREQ_32B_sum": 4}, "gfx90a")["read_bytes"] == 6 * 64 + 4 * 32
