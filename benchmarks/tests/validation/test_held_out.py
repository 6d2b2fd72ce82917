"""Launches drawn by a seed: are they the ones of the seed, and does the page have what was counted?"""

import pytest

from swizzle_benchmarks.evidence import PAGES
from swizzle_benchmarks.validation import held_out
from swizzle_benchmarks.validation.held_out import (
    DRAWS,
    LAUNCHED,
    Ran,
    committed,
    committed_table,
    drawn,
    pairs,
    predicted_of,
    regrets,
)

PAGE = PAGES / "predicted.md"


@pytest.mark.parametrize("name", DRAWS)
def test_the_committed_launches_are_those_of_the_seed(name):
    wanted = [
        (what, order, size) for what, sizes, orders in drawn(name, DRAWS[name].seed)
        for order in (LAUNCHED, *orders) for size in [sizes]
    ]  # fmt: skip
    lines = predicted_of(name)
    assert [(one["kernel"], one["order"]) for one in lines] == [one[:2] for one in wanted]
    for line, (_, _, sizes) in zip(lines, wanted, strict=True):
        problem = dict(word.split("=") for word in line["problem"].split())
        assert {key: int(problem[key]) for key in sizes} == sizes


@pytest.mark.parametrize("name", DRAWS)
def test_every_launch_was_counted_with_the_right_result(name):
    assert len(committed(name)) == len(predicted_of(name))


def test_the_page_says_what_was_counted():
    assert committed_table() in PAGE.read_text(encoding="utf-8")


def _launch(order, predicted, measured, read=100.0, counted=100.0, bundle="a"):
    return Ran(bundle, "gemm", "", order, predicted, measured, read, counted, 1000.0)


def test_errors_pairs_and_regrets_by_hand():
    found = [
        *(_launch(LAUNCHED, 10, 12), _launch("group_m(size=8)", 9, 13), _launch("row", 8, 10)),
        *(_launch(LAUNCHED, 5, 5, bundle="b"), _launch("group_m(size=8)", 6, 5.1, bundle="b")),
    ]
    assert pairs(found) == (2, 3)
    assert list(regrets(found).values()) == pytest.approx([0.0, 0.1, 0.16])
    assert _launch("row", 1, 1, read=150.0).read_error == pytest.approx(0.5)
    assert _launch("row", 1, 1, read=150.0).points == pytest.approx(-5.0)


def test_a_wrong_result_and_a_missing_count_are_left_out(tmp_path):
    predicted, counted = tmp_path / "predicted.csv", tmp_path / "counted.csv"
    predicted.write_text(
        ",".join(held_out.PREDICTED) + "\n" + "".join(f"a,gemm,M=1,c{i},row,1,2,1\n" for i in range(3))
    )
    counted.write_text(
        "bundle,candidate,result,time_cold_us,dram_read_bytes,read_sectors\n"
        "a,c0,bitwise,1,2,3\na,c1,differs,1,2,3\na,c2,bitwise,1,,\n"
    )
    assert len(held_out.read(predicted, counted)) == 1
