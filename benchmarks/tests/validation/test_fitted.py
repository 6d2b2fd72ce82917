"""Does every fitted constant name rows that exist and are not held out, and does a prediction count those it used?"""

import pytest

from swizzle_benchmarks.suite import flash_attention, layer_norm
from swizzle_benchmarks.validation.rows import DATA, all_rows
from swizzle_benchmarks.validation.split import half_of, named_rows
from swizzle_benchmarks.validation.workloads import dense_attention, fdtd, h200
from swizzle_benchmarks.validation.workloads.from_row import workload
from swizzle_sim.pricing.access_patterns import fitted_constants
from swizzle_sim.workload.kernels import kernel, kernel_names
from xcd_model import gpu, gpu_names

ROWS = all_rows()
FIRST = {(row.gpu, row.kernel): row for row in reversed(ROWS)}
OF_GPUS = {f"{name} {key}": fact.fitted_to for name in gpu_names() for key, fact in gpu(name).facts.items()}
OF_ROWS = {f"{at} {name}": named for at, row in FIRST.items() for name, named in workload(row).fitted.items()}
OF_SUITE = {f"{name} {key}": named for name in kernel_names() for key, named in kernel(name).fitted.items()}
FITTED = {name: named for name, named in {**OF_GPUS, **OF_ROWS, **OF_SUITE}.items() if named}


@pytest.mark.parametrize("name", FITTED)
def test_what_a_fitted_constant_names_exists_and_no_row_of_it_is_held_out(name):
    for pattern in FITTED[name]:
        found = named_rows(pattern, ROWS)
        assert bool(found) != (DATA.parent / pattern).is_file(), pattern
        held_out = [row.id for row in found if half_of(row) == "held out"]
        assert held_out == [], f"{pattern}: move the kernel to the fit half in data/split.csv, with the reason"


def test_a_name_of_no_row_is_found_out():
    assert named_rows("paper/stencil_2d@*", ROWS)[0].kernel == "stencil_2d"
    assert named_rows("paper/stencil_3d@*", ROWS) == [] and named_rows("stencil", ROWS) == []


def test_constants_of_kernels_are_those_of_their_modules():
    for module in (flash_attention, layer_norm, fdtd):
        assert all(hasattr(module, name) for name in module.FITTED)
    assert set(h200.FITTED) <= set(h200.KERNELS) and "SLICE" in h200.FITTED["stencil"]
    assert set(flash_attention.FITTED) < set(dense_attention.FITTED)


def used(name, kernel_of, replay, occupancy=2):
    return list(fitted_constants(gpu(name), kernel_of, replay, occupancy))


def test_only_constants_that_the_replay_reads_count():
    gemm, attention, norm = (kernel(name) for name in ("gemm", "attention", "layer_norm"))
    masks, softmax = ["l2.index_rows", "mall.index_rows"], list(flash_attention.FITTED)
    power = ["energy.fabric_pj_per_byte", "energy.mall_pj_per_byte"]
    assert used("mi300x", gemm, "lockstep") == [
        "l2.index_rows",
        *power,
        "energy.flop_pj.fp16",
    ]  # the size of its code is not stated
    assert used("mi300x", gemm, "timed") == [
        "l2.index_rows",
        "limits.reads_in_flight_per_cu",
        *power,
        "energy.flop_pj.fp16",
    ]
    assert used("mi355x", gemm, "timed") == masks  # its reads in flight are documented
    of_power = [*power, "energy.flop_pj.fp16"]
    assert used("mi300x", norm, "lockstep") == ["l1i.prefetch_lines", "l2.index_rows", *power, "IN_FLIGHT"]
    assert used("mi300x", attention, "lockstep") == [
        "l2.index_rows",
        "limits.matrix_beside_vector",
        *of_power,
        *softmax,
    ]
    assert used("mi300x", attention, "lockstep", occupancy=1) == ["l2.index_rows", *of_power, *softmax]
    of_h200 = ["l2.fetches_halves", "l2.index", "energy.power_w", "energy.flop_pj.fp16"]
    assert used("h200", gemm, "lockstep") == of_h200
    rows = ["l2_partitions.under_way", "hbm_rows.blocks", "hbm_rows.stretch_blocks", "hbm_rows.open_rows"]
    assert used("h200", gemm, "timed") == [*of_h200[:2], *rows, *of_h200[2:]]


def test_a_device_of_a_chip_keeps_what_was_fitted():
    device = gpu("mi300x-cpx")
    assert device.facts["l2.index_rows"].fitted_to == gpu("mi300x").facts["l2.index_rows"].fitted_to
    for name in ("mi300a", "mi325x"):  # copies of one fit: they move together
        for part in ("l2", "mall"):
            assert getattr(gpu(name), part).index_rows == getattr(gpu("mi300x"), part).index_rows
