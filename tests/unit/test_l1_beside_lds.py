"""Does an L1 that shares its array with LDS have what the driver leaves it, and every other L1 all it has?"""

import csv
import dataclasses

import pytest

from swizzle_benchmarks.validation.rows import DATA
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.workload.kernels import kernel
from xcd_model import Resources, gpu, gpu_names, workgroups_per_cu
from xcd_model.errors import SpecError
from xcd_model.nvidia.rates import l1_after_shared_memory

KB = 1024


def taken(threads, vgprs, lds_bytes):
    """LDS that the rule sets aside on an H200 [bytes]."""
    resources = Resources(
        threads=threads, vgprs=vgprs, lds_bytes=lds_bytes, instructions_in_flight=1, source="made for this test"
    )
    return gpu("h200").l1.size_bytes - l1_after_shared_memory(resources, gpu("h200")).l1.size_bytes


def test_the_rule_gives_the_carve_outs_that_were_counted_but_for_one():
    with (DATA / "machine" / "h200_carve_outs.csv").open(encoding="utf-8", newline="") as file:
        launches = [{name: int(cell) for name, cell in line.items()} for line in csv.DictReader(file)]
    assert len(launches) == 240
    names = ("threads", "registers", "shared_bytes")
    wrong = [one for one in launches if taken(*(one[name] for name in names)) != one["carve_out_bytes"]]
    assert wrong == [{"threads": 512, "registers": 16, "shared_bytes": 1 * KB, "carve_out_bytes": 16 * KB}]


@pytest.mark.parametrize(
    ("threads", "vgprs", "lds_kb", "expected_kb"),
    [
        (128, 96, 1, 32),  # nothing but the system's kilobyte: room for 32 workgroups
        (128, 32, 5, 132),  # 16 fit, room for twice as many would be 160, over half of all
        (128, 32, 17, 228),  # 16 would fit without: as many as do fit, 13
        (256, 186, 145, 164),  # one alone
        (1024, 16, 8, 16),  # two of the largest
    ],
)
def test_by_hand(threads, vgprs, lds_kb, expected_kb):
    assert taken(threads, vgprs, lds_kb * KB) == expected_kb * KB


def test_what_is_left_keeps_its_sets_and_is_not_divided_twice():
    h200 = gpu("h200")
    resources = Resources(threads=128, vgprs=96, lds_bytes=KB, instructions_in_flight=1, source="made for this test")
    left = l1_after_shared_memory(resources, h200)
    assert (left.l1.size_bytes, left.l1.ways, left.l1.sets) == (224 * KB, 56, h200.l1.sets)
    assert l1_after_shared_memory(resources, left) is left
    assert workgroups_per_cu(resources, left) == workgroups_per_cu(resources, h200)


def test_amds_l1_is_an_array_of_its_own():
    resources = Resources(threads=256, vgprs=128, lds_bytes=64 * KB, instructions_in_flight=1, source="made here")
    others = [gpu(name) for name in gpu_names() if name.startswith("mi")]
    assert len(others) == 7
    for one in others:
        assert l1_after_shared_memory(resources, one) is one


def test_a_score_is_of_the_l1_that_the_kernel_leaves():
    resources = Resources(threads=256, vgprs=128, lds_bytes=100 * KB, instructions_in_flight=2, source="made here")
    work = dataclasses.replace(kernel("gemm", M=512, N=512, K=256), resources=resources)
    scorer = Scorer(work, gpu("h200"), replay="lockstep")
    assert (scorer.gpu.l1.size_bytes, scorer.plan.gpu.l1.size_bytes) == (256 * KB, (256 - 228) * KB)


@pytest.mark.parametrize("sizes", [(), (8192, 0), (0, 0), (-8192, 8192), (0, 262144), (0, 100), (0, 8192.0), (True,)])
def test_carve_outs_that_cannot_be_are_refused(sizes):
    with pytest.raises(SpecError, match="lds_carve_outs"):
        dataclasses.replace(gpu("h200").l1, lds_carve_outs=sizes)
