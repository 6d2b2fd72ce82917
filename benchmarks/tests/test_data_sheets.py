"""Are the shipped descriptions those of data sheets and papers, and the suite's sizes those that the paper measured?"""

import numpy as np
import pytest

from swizzle_benchmarks.evidence import PAGES
from swizzle_sim.workload.kernels import kernel, kernel_names
from tests.conftest import typed  # noqa: F401  (a fixture)
from xcd_model import Traffic, energy, gpu, gpu_names
from xcd_model.replay.traffic import COLUMNS

# name, xcds, CUs, LDS bytes, HBM bytes, HBM peak GB/s, clock MHz, dense fp16 TFLOPS: data sheets
MI300X = gpu("mi300x")

PUBLIC = [
    ("mi300x", 8, 304, 65536, 192 << 30, 5300, 2100, 1307.4),
    ("mi300a", 6, 228, 65536, 128 << 30, 5300, 2100, 980.6),
    ("mi325x", 8, 304, 65536, 256 << 30, 6000, 2100, 1307.4),
    ("mi355x", 8, 256, 163840, 288 << 30, 8000, 2400, 2516.6),
    ("mi350x", 8, 256, 163840, 288 << 30, 8000, 2200, 2306.9),
    ("mi308x", 4, 80, 65536, 192 << 30, 5300, 2100, 344.1),
    ("h100", 1, 132, 233472, 80 << 30, 3350, 1980, 989.4),
]


@pytest.mark.parametrize("row", PUBLIC, ids=[row[0] for row in PUBLIC])
def test_public_figures(row):
    machine = gpu(row[0])
    hbm, lds = machine.hbm, machine.limits.lds_bytes_per_cu
    size = (machine.xcds, machine.cus, lds, hbm.size_bytes)
    rate = (hbm.peak_bandwidth_gbps, machine.clock_mhz, machine.peak_tflops["fp16"])
    assert size + rate == row[1:]


@pytest.mark.parametrize("name", [name for name in gpu_names() if name.startswith("mi3")])
def test_public_cache_geometry(name):
    machine = gpu(name)
    l2 = machine.l2
    assert (l2.size_bytes, l2.line_bytes, l2.ways, l2.channels) == (4 << 20, 128, 16, 16)
    assert (machine.l1.sets, machine.l2.sets) == (4, 2048)
    assert machine.mall is not None
    assert (machine.mall.size_bytes, machine.mall.ways) == (256 << 20, 16)
    assert machine.l2.read_bytes_per_cycle == 2048


def test_white_paper_bandwidths_follow_from_the_widths():
    machine = gpu("mi300x")
    ghz = machine.clock_mhz / 1000
    assert machine.xcds * machine.l2.read_bytes_per_cycle * ghz == pytest.approx(34400, rel=2e-3)  # [GB/s]
    assert machine.mall.read_bytes_per_cycle * ghz == pytest.approx(17200, rel=2e-3)
    assert machine.cus * 2048 * ghz / 1000 == pytest.approx(machine.peak_tflops["fp16"], rel=1e-3)


def test_published_figures_of_nps4():
    chip, device = gpu("mi300x"), gpu("mi300x-cpx-nps4")
    assert (device.xcds, device.cus) == (1, 38)
    assert (device.mall.size_bytes, device.hbm.size_bytes) == (64 << 20, 24 << 30)  # AMD partitioning overview: 24 GB
    assert chip.mall.latency_ns / device.mall.latency_ns == pytest.approx(1.42)  # SC25, The MALL is Open
    assert chip.hbm.latency_ns / device.hbm.latency_ns == pytest.approx(1.31)
    assert device.facts["hbm.latency_ns"].status == "assumed"
    assert device.facts["l2.ways"] == chip.facts["l2.ways"]


def test_a_full_load_stays_near_the_board_limit():
    """Peak rate and full HBM bandwidth for a second: the range must hold the 750 W of the data sheet."""
    lines = round(MI300X.hbm.bandwidth_gbps * 1e9 / 128)
    counts = [0, 8 * lines, 0, lines, 0, 0, lines, 0, 0, 0]
    share = MI300X.sustained_clock_mhz / MI300X.clock_mhz
    timeline = np.array(counts, np.int64).reshape(1, 1, len(COLUMNS))
    traffic = Traffic(timeline=timeline, turns_per_bin=1, turns=1, fetch_bytes=128, write_request_bytes=64)
    got = energy(traffic, MI300X, flops=MI300X.peak_tflops["fp16"] * 1e12 * share, dtype="fp16", time_us=1e6)
    assert got.low_joules < 750 < got.high_joules


# Grid and launches measured for the paper.
MEASURED = {
    "softmax": ((32768,), 1),
    "layer_norm": ((20480,), 1),
    "fused_elementwise": ((16384,), 1),
    "transpose": ((1024, 1024), 1),
    "stencil_2d": ((256, 256), 1),
    "spmv": ((4096,), 1),
    "gemm_streamk": ((304,), 1),
    "fdtd_2d": ((256, 256), 1500),
    "smith_waterman": ((256, 256), 1),
    "black_scholes": ((262144,), 1),
}


@pytest.mark.parametrize("name", MEASURED)
def test_defaults_are_the_measured_sizes(name):
    work = kernel(name)
    assert (work.grid.launch, work.launches) == MEASURED[name]
    assert name in kernel_names()


def test_the_page_has_every_kernel():
    text = (PAGES / "suite.md").read_text(encoding="utf-8")
    for name in kernel_names():
        assert f"| `{name}` | {kernel(name).summary} | {kernel(name).grid} |" in text, "run: make docs"
        assert f"\n| {name} | " in text
