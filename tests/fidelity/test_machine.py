"""What micro-benchmarks of an H200 say, and that its description says the same."""

import csv
import sys
from statistics import mean, median

import pytest

from benchmarks.fidelity import measure_machine
from benchmarks.fidelity.measure_machine import middles
from benchmarks.fidelity.rows import DATA
from xcd_model import gpu


def table():
    with (DATA / "machine" / "h200.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize(
    ("what", "size", "level"),
    [
        ("latency through the L1", 16 << 10, "l1"),
        ("latency past the L1", 16 << 20, "l2"),
        ("latency past the L1", 256 << 20, "hbm"),
    ],
)
def test_latencies_of_the_description_are_the_measured_ones(what, size, level):
    values = [
        float(line["value"])
        for line in table()
        if (line["what"], line["bytes"], line["unit"]) == (what, str(size), "ns")
    ]
    assert len(values) == 24  # three runs on eight SMs
    assert getattr(gpu("h200"), level).latency_ns == pytest.approx(median(values), rel=0.005)


def test_rates_of_the_description_are_those_of_ten_profiled_launches():
    """A dense fp16 matrix unit does 4096 flop a clock; the L2's clock is not the SMs'."""
    with (DATA / "machine" / "h200_ncu.csv").open(encoding="utf-8", newline="") as file:
        launches = list(csv.DictReader(file))
    h200, sm_ghz = gpu("h200"), [float(line["sm_ghz"]) for line in launches]
    assert len(launches) == 10 and min(sm_ghz) > 1.29 and max(sm_ghz) < 1.6
    assert h200.sustained_tflops("fp16") == pytest.approx(4.096 * h200.cus * mean(sm_ghz), rel=0.005)
    out = mean(float(line["l2_ghz"]) * float(line["l2_out_peak_bytes_per_clock"]) for line in launches)
    assert h200.l2.read_bytes_per_cycle * h200.clock_mhz / 1e3 == pytest.approx(out, rel=0.005)


def test_a_line_of_words_has_the_middle_and_the_ends():
    lines = [{"what": "reads", "bytes": str(1 << 20), "together": "2", "value": v, "unit": "GB/s"} for v in "315"]
    assert middles(lines) == ["reads, 1 MiB, 2 SMs at one place: 3.0 GB/s (1.0 to 5.0)"]


def test_without_the_compiler_it_says_so(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "argv", ["measure_machine", str(tmp_path / "out")])
    monkeypatch.setattr(measure_machine.shutil, "which", lambda name: None)
    with pytest.raises(SystemExit, match="nvcc is not on the PATH"):
        measure_machine.main()
    monkeypatch.setattr(sys, "argv", ["measure_machine"])
    with pytest.raises(SystemExit, match="FOLDER"):
        measure_machine.main()
    assert not (tmp_path / "out").exists()
