"""Are the cycles that waves are timed by those that an H200 showed?"""

import csv
import math

from swizzle_benchmarks.validation.rows import DATA
from swizzle_sim.nvidia import waves
from swizzle_sim.nvidia.sass import Controlled
from xcd_model import gpu

NONE = 7


def code(name, operands="", stall=1, sets=NONE, reads=NONE, waits=()):
    return Controlled(name, operands, stall, sets, reads, tuple(waits))


def test_an_h200_multiplies_and_stores_at_the_same_time_as_shared_memory_allows():
    """Clocks a step of up to three workgroups an SM: all products, or all that shared memory moves."""
    with (DATA / "machine" / "h200_shared_memory.csv").open(encoding="utf-8", newline="") as file:
        lines = [{name: float(value) for name, value in line.items()} for line in csv.DictReader(file)]
    off, products_alone = [], []
    for line in lines:
        product = waves._op(code(f"HGMMA.64x{line['columns']:.0f}x16.F32", "R24, gdesc[UR8], R24"))
        times = line["warpgroups"] * line["products"]
        moved = times * product.operands + 1024 * line["kib_stored"] / waves.SHARED_BYTES
        if times and line["kib_stored"] and line["workgroups_per_sm"] > 1:
            off.append(math.log(line["clocks"] / max(times * product.matrix, moved)))
            products_alone.append(math.log(line["clocks"] / (times * product.matrix)))
    assert len(off) == 56
    mean, most = 100 * sum(map(abs, off)) / len(off), 100 * max(map(math.expm1, map(abs, off)))
    factor = math.exp(sum(products_alone) / len(off))
    assert (round(mean), round(most), round(factor, 1)) == (3, 6, 1.6)


def test_the_l2_and_the_fill_are_the_gpus():
    for device in (gpu("h200"), gpu("h100")):
        assert round(device.l2.latency_ns * device.sustained_clock_mhz / 1e3) == waves.L2
        assert round(device.limits.fill_bytes_per_cycle) == waves.FILL_BYTES
        assert (device.limits.simds_per_cu, device.limits.lanes_per_simd) == (waves.SIMDS, waves.LANES)


def test_latencies_are_those_of_the_table():
    with (DATA / "machine" / "h200_instructions.csv").open(encoding="utf-8", newline="") as file:
        measured = {line["instruction"]: math.floor(float(line["cycles"])) for line in csv.DictReader(file)}
    used = {"shuffle": "SHFL", "exp2": "MUFU", "convert": "F2I", "shared": "LDS", "matrix": "LDSM", "local": "LDL"}
    used |= {"product": "HMMA", "fence": "FENCE"}
    assert {name: waves.LATENCY[kind] for name, kind in used.items()} | {"barrier": waves.BARRIER} == measured
