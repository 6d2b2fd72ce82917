"""Does the rule of the L1 beside LDS give the carve-outs that an H200's driver was seen to choose?"""

import csv

from swizzle_benchmarks.validation.rows import DATA
from xcd_model import Resources, gpu
from xcd_model.nvidia.rates import l1_after_shared_memory


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
    assert wrong == [{"threads": 512, "registers": 16, "shared_bytes": 1024, "carve_out_bytes": 16 * 1024}]
