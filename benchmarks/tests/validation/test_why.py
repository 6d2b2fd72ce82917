"""Has every kernel that the page calls far off an explanation, and is the page that of the committed rows?"""

import pytest

from swizzle_benchmarks.evidence import PAGES
from swizzle_benchmarks.validation.page.page import STANDINGS, explanations, is_far, page, why_section
from swizzle_benchmarks.validation.page.report import read
from swizzle_benchmarks.validation.predict import Prediction
from swizzle_benchmarks.validation.rows import all_rows
from swizzle_benchmarks.validation.variants import VARIANTS
from xcd_model.errors import SwizzleSimError

ROWS = {row.id: row for row in all_rows()}


def test_every_kernel_that_is_far_off_is_explained_and_no_other():
    model = read(PAGES / "fidelity.csv", list(ROWS.values()), ["timed"])
    far = {(one.row.gpu, one.row.kernel) for one in model if is_far(one)}
    assert far == set(explanations())
    assert {standing for standing, _ in explanations().values()} == set(STANDINGS)
    assert all(words.strip() for _, words in explanations().values())


def test_the_section_has_the_worst_of_each_quantity_and_says_where_nothing_is_known():
    row = ROWS["paper/softmax@8192:identity"]
    text = why_section([Prediction(row=row, variant="timed", value=row.measured - 28.9, counts={})])
    assert "| mi300x | softmax | 1 of 1 | l2_hit_pct -29 points | not known | every item is read once" in text
    near = why_section([Prediction(row=row, variant="timed", value=row.measured - 5, counts={})])
    assert "softmax" not in near


def test_the_page_is_that_of_the_committed_rows_and_a_row_that_was_not_predicted_is_named(tmp_path):
    kept = PAGES / "fidelity.csv"
    assert page(read(kept, list(ROWS.values()), list(VARIANTS))) == (PAGES / "fidelity.md").read_text(encoding="utf-8")
    cut = tmp_path / "fidelity.csv"
    cut.write_text("\n".join(kept.read_text(encoding="utf-8").splitlines()[:2]), encoding="utf-8")
    with pytest.raises(SwizzleSimError, match=r"no prediction of paper/.*replay the rows without --from"):
        read(cut, list(ROWS.values()), ["timed"])
