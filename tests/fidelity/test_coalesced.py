"""Is how often reads of a GPC meet what the counted sectors say?"""

from swizzle_benchmarks.fidelity.coalesced import fitted, read, report, rms
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
    monkeypatch.setattr("swizzle_benchmarks.fidelity.coalesced.fitted", lambda lines, device: 0.05)
    report(LINES, H200, said.append)
    assert said[0] == "under_way = 0.050 by least squares, of the orders of the suite"
    assert any(line.startswith("flag-gems mm: 15 orders") for line in said)
