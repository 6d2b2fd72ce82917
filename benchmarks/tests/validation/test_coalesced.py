"""Is how often reads of a GPC meet what the counted sectors say?"""

import numpy as np

from benchmarks.tests.validation.tables import lines_of
from swizzle_benchmarks.evidence import PAGES
from swizzle_benchmarks.validation.coalesced import fitted, read, report, rms
from swizzle_benchmarks.validation.held_out import predicted_of
from swizzle_benchmarks.validation.rows import DATA
from xcd_model import gpu

H200 = gpu("h200")
LINES = read()


def test_the_number_in_the_description_is_the_fit_to_the_suite():
    assert H200.l2_partitions.under_way == round(fitted(LINES, H200), 2)


def test_published_kernels_are_nearer_with_it_than_where_nothing_merges():
    published = [line for line in LINES if line.is_published]
    assert len(published) == 95
    assert rms(published, H200, H200.l2_partitions.under_way) < 0.5 * rms(published, H200, 0.0)


def test_the_report_says_what_is_left_of_each_kernel(monkeypatch):
    said = []
    monkeypatch.setattr("swizzle_benchmarks.validation.coalesced.fitted", lambda lines, device: 0.05)
    report(LINES, H200, said.append)
    assert said[0] == "under_way = 0.050 by least squares, of the orders of the suite"
    assert any(line.startswith("flag-gems mm: 15 orders") for line in said)


def both_counts():
    """Lines of the table with what SMs took in and what the L2 gave out."""
    merged = {(one["draw"], one["bundle"], one["order"]): one for one in lines_of(DATA / "machine" / "h200_merged.csv")}
    ran = {}
    for draw in {draw for draw, _, _ in merged}:
        for one in predicted_of(draw):
            ran[draw, one["kernel"], one["problem"], one["order"]] = merged[draw, one["bundle"], one["order"]]
    found = [(line, ran.get((line.draw, line.kernel, line.problem, line.order))) for line in LINES]
    return [(line, int(of["arrived"]), int(of["given"])) for line, of in found if of]


def test_what_arrives_is_what_is_asked_for_where_the_l1_has_nothing():
    found = both_counts()
    assert len(found) == 400
    off = {line.kernel for line, arrived, _ in found if abs(arrived / line.asked - 1) > 0.1}
    assert off == {"flag-gems conv2d", "attention_gqa", "attention_varlen", "mlstm"}


def test_more_readers_meet_more_with_one_workgroup_an_sm_and_hardly_more_with_two():
    """Sent of what arrives, against 1 + (k - 1) u, at most 4, and against 1 + c (1 - 1 / k), of k readers."""

    def agree(workgroups, as_one):
        gemm = ("gemm", "gemm of wide tiles")
        some = [(line, given / arrived) for line, arrived, given in both_counts() if line.kernel in gemm]
        some = [(line.readers[1:], sent) for line, sent in some if line.workgroups_per_sm == workgroups]
        said = [(by / as_one(np.arange(1, by.size + 1))).sum() / by.sum() for by, _ in some]
        return len(some), round(float(np.corrcoef(said, [sent for _, sent in some])[0, 1]), 2)

    def grows(under_way):
        return lambda k: np.minimum(4, 1 + (k - 1) * under_way)

    def ends(most):
        return lambda k: 1 + most * (1 - 1 / k)

    text = (PAGES / "laboratory/h200-l2.md").read_text(encoding="utf-8")
    (one, linear), (_, saturated) = agree(1, grows(0.22)), agree(1, ends(1.1))
    assert f"{one} orders of GEMM with one workgroup an SM to {linear} (0.22), the second to {saturated} (1.1)" in text
    (two, linear), (_, saturated) = agree(2, grows(0.03)), agree(2, ends(0.25))
    assert f"the {two} with two to {linear:.2f} (0.03) and {saturated} (0.25)".replace("-", "−") in text
