"""Do the page's tables of the bundles that an H200 ran come from the committed predictions and counts?"""

import json

import pytest

from swizzle_benchmarks.evidence import PAGES
from swizzle_benchmarks.validation.bundles import GROUPED, LAUNCHED, Order, orders, regrets, table
from swizzle_sim.hardware.results import measurements_of, pairs_in
from tests.hardware.conftest import DATA

PAGE = PAGES / "predicted.md"


def test_the_page_has_the_tables_that_the_script_prints():
    assert table() in PAGE.read_text(encoding="utf-8")


def test_each_kernel_has_its_launch_order_group_m_and_one_choice():
    found = orders()
    assert len(found) == 21 and {one.kernel for one in found} == {"attention", "grouped_gemm", "transpose"}
    for kernel in {one.kernel for one in found}:
        mine = [one for one in found if one.kernel == kernel]
        assert mine[0].order == LAUNCHED and GROUPED in [one.order for one in mine]
        (choice,) = [one for one in mine if one.is_choice]
        assert choice.predicted_us == min(one.predicted_us for one in mine)


def test_regret_is_over_the_best_that_was_measured():
    def order(name, measured_us, is_choice=False):
        return Order("k", "M=1", name, is_choice, 1.0, measured_us, 0, None)

    found = [order(LAUNCHED, 120.0), order("row", 110.0, is_choice=True), order(GROUPED, 100.0)]
    values = [one for (one,) in regrets(found).values()]
    assert values == pytest.approx([0.1, 0.2, 0.0])


def test_the_page_has_the_figures_of_an_h200():
    text = PAGE.read_text(encoding="utf-8")
    for kernel in ("gemm", "attention", "transpose"):
        for one in measurements_of(json.loads((DATA / "h200" / kernel / "result.json").read_text())):
            figures = f"{one.read_bytes / 1e9:.3f} | {100 * one.l2_hit_rate:.1f} | {one.time_cold_us:.1f} |"
            name = "launch order" if one.candidate == "original" else one.name
            assert f"| {name} | {figures}" in text


@pytest.mark.parametrize("kernel", ["gemm", "transpose", "attention"])
def test_what_an_h200_counted(kernel):
    ((manifest, result),) = pairs_in(DATA / "h200" / kernel)
    assert result["kind"] == "measured" and result["machine"]["name"] == "NVIDIA H200"
    found = measurements_of(result)
    assert len(found) == 4 == len(manifest["candidates"])
    assert all(one.right == "bitwise" and one.kind == "measured" for one in found)
    for one in found:
        assert one.l2_hits + one.l2_misses > 1e7 and one.read_bytes > 1e8
        for name in ("time_cold_us", "read_bytes", "l2_hit_rate"):
            assert one.spreads[name][0] <= getattr(one, name) <= one.spreads[name][1]
        assert result["candidates"][one.candidate]["time_us"]["cold"]["samples"] == 100
