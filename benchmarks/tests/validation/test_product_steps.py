"""Does the page of the SM say what was measured of products, and do two workgroups wait for each other in the model?"""

import importlib.util

import pytest

from benchmarks.tests.validation.tables import lines_of
from swizzle_benchmarks.evidence import PAGES
from swizzle_benchmarks.lab.product_steps import measured_steps, named, simulated
from swizzle_benchmarks.validation.rows import DATA

TEXT = (PAGES / "laboratory/h200-sm.md").read_text(encoding="utf-8")


def test_the_page_says_what_steps_took_by_workgroups():
    lines = [line for line in measured_steps() if int(line["workgroups_per_sm"]) <= 3]
    assert len(lines) == 20
    for line in lines:
        assert f"| {named(line)} | {line['workgroups_per_sm']} | {float(line['us']):.3f} |" in TEXT


def test_the_page_says_what_products_took_beside_stores():
    lines = lines_of(DATA / "machine" / "h200_shared_memory.csv")
    for line in lines:
        columns, groups, products, kib = (int(line[name]) for name in [*line][:4])
        if products and line["workgroups_per_sm"] == ("1" if columns == 256 else "2"):
            times = groups * products
            moved = times * (64 + columns) // 4 + 8 * kib
            row = next(one for one in TEXT.splitlines() if one.startswith(f"| {columns} | {groups} | {products} |"))
            assert f" {float(line['clocks']):.0f} ({max(times * columns // 2, moved)}) |" in row


@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="needs the triton extra")
def test_a_step_of_two_workgroups_is_timed_as_measured(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    one, two = (
        line
        for line in measured_steps()
        if line["type"] == "bf16"
        and line["block_m"] == "128"
        and line["block_n"] == "64"
        and line["workgroups_per_sm"] < "3"
    )
    found = [simulated(line) for line in (one, two)]
    assert found == pytest.approx([float(line["us"]) for line in (one, two)], rel=0.1)
    assert found[1] > 1.25 * found[0]
