"""Is a contributed row taken only if it can be replayed, and is its order what was measured?"""

import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from benchmarks.tests.validation.test_rows import GOOD
from swizzle_benchmarks.validation import contribute, contributed
from swizzle_benchmarks.validation.agreed import rows_of
from swizzle_benchmarks.validation.contributed import ContributionError
from swizzle_benchmarks.validation.rows import DATA, Row, all_rows
from swizzle_benchmarks.validation.split import LATER, place_of, split
from swizzle_benchmarks.validation.variants import predict
from swizzle_benchmarks.validation.workloads.from_row import tiles_of, workload
from swizzle_sim.hardware.agreement import agreement
from swizzle_sim.hardware.results import pairs_in
from swizzle_sim.language import family
from xcd_model import gpu, workgroups_per_cu
from xcd_model.errors import HardwareError

MEASURED = Path(__file__).parents[3] / "tests" / "hardware" / "data" / "h200"
ROWS = all_rows()
SWIZZLED = GOOD | {"id": "mine-2", "order": "contiguous", "mapping": family("contiguous")}


def written(path, *rows):
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, contributed.COLUMNS)
        writer.writeheader()
        writer.writerows({name: row.get(name, "") for name in contributed.COLUMNS} for row in rows)
    return path


@pytest.mark.parametrize("kernel", ["gemm", "attention"])
def test_rows_of_a_bundle_are_those_of_the_table(kernel):
    """The table holds what was taken of the H200 results that the tests keep."""
    with (DATA / "contributed.csv").open(newline="") as file:
        table = {line["id"]: line for line in csv.DictReader(file)}
    lines = contribute.checked(MEASURED / kernel)
    assert len(lines) == 16 and all(table[line["id"]] == line for line in lines)


def test_a_swizzle_of_the_closed_language_is_replayed_as_the_formula_is(tmp_path):
    """`contiguous` in words of its own: the formula of GOOD."""
    path = written(tmp_path / "rows.csv", GOOD, SWIZZLED)
    formula, swizzle = (Row(**line) for line in contributed.read(path))
    tiles = [tiles_of(row, workload(row), 8) for row in (formula, swizzle)]
    assert np.array_equal(*tiles) and tiles[0].tolist() == [w % 8 * 8 + w // 8 for w in range(64)]
    counts = [predict(row, "lockstep", gpu("mi300x"))["l2_hits"] for row in (formula, swizzle)]
    assert counts[0] == counts[1]


def test_orders_over_tiles_are_numbered_as_the_kernel_numbers_them():
    row = next(row for row in ROWS if row.id.startswith("contributed/gemm-") and "candidate_1:" in row.id)
    tiles = tiles_of(row, workload(row), 1)
    assert row.order == "group_m(size=8)" and tiles[:9].tolist() == [0, 64, 128, 192, 256, 320, 384, 448, 1]


def test_a_suite_kernel_takes_the_resources_that_its_row_was_measured_with():
    """GEMM of 128 x 128 on an H200: 108 registers of 8 warps leave room for two; AMD's compile would not fit."""
    row = next(row for row in ROWS if row.id.startswith("contributed/gemm-"))
    work = workload(row)
    assert (work.resources.vgprs, work.resources.lds_bytes, work.resources.threads) == (108, 66560, 256)
    assert workgroups_per_cu(work.resources, gpu("h200")) == 2


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"gpu": "mi999"}, "mi999"),
        ({"kernel": "my_kernel"}, "my_kernel"),
        ({"problem": '{"ROWS": 3}'}, "ROWS"),
        ({"mapping": "pid = pid // 2"}, "both compute"),
        ({"mapping": "pid = pid / 2"}, "//"),
        ({"mapping": "", "order": "spiral"}, "spiral"),
        ({"bijective": "False"}, "bijective = False"),
        ({"driver": ""}, "driver is empty"),
    ],
)
def test_what_cannot_be_replayed_is_refused_by_name(tmp_path, changes, says):
    path = written(tmp_path / "rows.csv", GOOD, SWIZZLED | changes)
    with pytest.raises(ContributionError, match=says):
        contribute.checked(path)


def test_a_file_is_taken_whole_once_or_not_at_all(tmp_path, capsys):
    path, table = written(tmp_path / "rows.csv", GOOD, SWIZZLED), tmp_path / "table.csv"
    contribute.main([str(path), "--to", str(table), "--check"])
    assert not table.exists()
    contribute.main([str(path), "--to", str(table)])
    assert "2 rows added" in capsys.readouterr().out and len(list(contributed.read(table))) == 2
    other = written(tmp_path / "other.csv", GOOD | {"id": "mine-3"}, SWIZZLED)
    with pytest.raises(SystemExit, match="mine-2 is there already"):
        contribute.main([str(other), "--to", str(table)])
    with pytest.raises(SystemExit, match="no such file"):
        contribute.main([str(tmp_path / "none.csv"), "--to", str(table)])
    assert len(list(contributed.read(table))) == 2


@pytest.mark.parametrize(("key", "field"), [("nvidia_smi", "driver"), ("triton", "compiler")])
def test_a_result_that_names_no_driver_or_compiler_makes_no_row(tmp_path, key, field):
    shutil.copytree(MEASURED / "gemm", tmp_path / "gemm")
    path = tmp_path / "gemm" / "result.json"
    result = json.loads(path.read_text())
    machine = result["machine"]
    for one in (machine, machine["versions"]):
        one.pop(key, None)
    for one in ("rocm", "hip") if field == "driver" else ():
        machine.pop(one, None)
        machine["versions"].pop(one, None)
    path.write_text(json.dumps(result))
    ((manifest, changed),) = pairs_in(tmp_path / "gemm")
    with pytest.raises(HardwareError, match=f"names no {field}"):
        rows_of(agreement(manifest, changed))


def test_what_was_replayed_or_is_of_the_wrong_kind_makes_no_row():
    ((manifest, result),) = pairs_in(MEASURED / "gemm")
    with pytest.raises(HardwareError, match="replayed, not measured"):
        rows_of(agreement(manifest, {**result, "kind": "replayed"}))
    with pytest.raises(HardwareError, match="a value is missing or of the wrong kind"):
        rows_of(agreement(manifest, {**result, "machine": {**result["machine"], "versions": 5}}))


def test_every_measured_kernel_has_its_half_with_a_reason():
    kernels = {(row.gpu, row.kernel) for row in ROWS}
    assert kernels == set(split())
    for device in {name for name, _ in kernels}:
        halves = [split()[key].half for key in kernels if key[0] == device]
        assert set(halves) == {"fit", "held out"}
    assert all(place.reason for place in split().values())
    assert place_of("mi300x", "a kernel of tomorrow") == place_of("h900", "gemm")
    assert place_of("h900", "gemm").reason == LATER and place_of("h900", "gemm").half == "held out"
