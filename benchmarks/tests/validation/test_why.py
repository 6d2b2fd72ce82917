"""Has every kernel that the page calls far off an explanation, and does the page show it?"""

import csv

from swizzle_benchmarks.evidence import PAGES
from swizzle_benchmarks.validation.page.page import STANDINGS, explanations, is_far, why_section
from swizzle_benchmarks.validation.predict import Prediction
from swizzle_benchmarks.validation.rows import all_rows

ROWS = {row.id: row for row in all_rows()}


def of_the_page():
    with (PAGES / "fidelity.csv").open(encoding="utf-8", newline="") as file:
        lines = [line for line in csv.DictReader(file) if line["variant"] == "timed" and line["predicted"]]
    return [
        Prediction(row=ROWS[line["id"]], variant="timed", value=float(line["predicted"]), counts={}) for line in lines
    ]


def test_every_kernel_that_is_far_off_is_explained_and_no_other():
    far = {(one.row.gpu, one.row.kernel) for one in of_the_page() if is_far(one)}
    assert far == set(explanations())
    assert {standing for standing, _ in explanations().values()} == set(STANDINGS)
    assert all(words.strip() for _, words in explanations().values())


def test_the_section_has_the_worst_of_each_quantity_and_says_where_nothing_is_known():
    row = ROWS["paper/softmax@8192:identity"]
    text = why_section([Prediction(row=row, variant="timed", value=row.measured - 28.9, counts={})])
    assert "| mi300x | softmax | 1 of 1 | l2_hit_pct -29 points | not known | every item is read once" in text
    near = why_section([Prediction(row=row, variant="timed", value=row.measured - 5, counts={})])
    assert "softmax" not in near
