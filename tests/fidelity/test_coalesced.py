"""Is how often reads of a GPC meet what the counted sectors say?"""

import pytest

from swizzle_benchmarks.fidelity.coalesced import fitted, read, report, rms, sent
from xcd_model import gpu
from xcd_model.nvidia.coalescer import share_sent

H200 = gpu("h200")
LINES = read()


def test_the_number_in_the_description_is_the_fit_to_the_suite():
    assert H200.l2_partitions.under_way == pytest.approx(fitted(LINES, H200))


def test_shares_are_those_of_the_model():
    sides, some = H200.l2_partitions, LINES[::50]
    of_model = [float(share_sent(line.readers, sides.reads_as_one, sides.under_way)) for line in some]
    assert sent(some, H200, sides.under_way).tolist() == pytest.approx(of_model)


def test_published_kernels_are_nearer_with_it_than_where_nothing_merges():
    published = [line for line in LINES if line.is_published]
    assert len(published) == 95
    assert rms(published, H200, H200.l2_partitions.under_way) < 0.5 * rms(published, H200, 0.0)


def test_the_report_says_what_is_left_of_each_kernel():
    said = []
    report(LINES, H200, said.append)
    assert said[0] == "under_way = 0.050 by least squares, of the orders of the suite"
    assert any(line.startswith("flag-gems mm: 15 orders") for line in said)
