"""Do workgroups go to the XCD they should, and as many to a CU as fit?"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import naive
from tests.machines import small_gpu
from xcd_model.dispatch import Resources, check_order, workgroups_per_cu, xcd_of
from xcd_model.errors import ReplayError
from xcd_model.gpu import gpu


@given(n=st.integers(0, 60), xcds=st.integers(1, 9), offset=st.integers(0, 8))
def test_round_robin(n, xcds, offset):
    xcd = xcd_of(n, small_gpu(xcds=xcds, offset=offset % xcds))
    for x, mine in enumerate(naive.queues(n, xcds, offset % xcds)):
        assert np.flatnonzero(xcd == x).tolist() == mine
    assert np.ptp(np.bincount(xcd, minlength=xcds)) <= 1


def resources(**change):
    return Resources(
        **({"threads": 512, "vgprs": 128, "lds_bytes": 0, "instructions_in_flight": 4, "source": "x"} | change)
    )


# by hand, on a CU of 4 SIMDs, 8 waves and 512 registers a SIMD, 64 KiB of LDS, 32 workgroups, 16 with a barrier
@pytest.mark.parametrize(
    ("change", "fit"),
    [
        ({}, 2),  # 8 waves of 128 registers: 4 waves a SIMD, 16 a CU
        ({"lds_bytes": 32 * 1024}, 2),
        ({"lds_bytes": 32 * 1024 + 1}, 1),
        ({"vgprs": 256, "lds_bytes": 64 * 1024}, 1),
        ({"vgprs": 129}, 1),  # rounded up to 136: 3 waves a SIMD, 12 a CU
        ({"vgprs": 1}, 4),  # 32 waves
        ({"threads": 64, "vgprs": 1}, 32),
        ({"threads": 65, "vgprs": 1}, 16),
        ({"threads": 128, "vgprs": 1}, 16),  # 16 barriers
        ({"threads": 1024, "vgprs": 64}, 2),
        ({"threads": 1, "vgprs": 512}, 4),
        ({"vgprs": 0, "threads": 256}, 8),
    ],
)
def test_occupancy_by_hand(change, fit):
    assert workgroups_per_cu(resources(**change), gpu("mi300x")) == fit


@pytest.mark.parametrize(
    ("change", "short"),
    [
        ({"lds_bytes": 65537}, r"LDS \(65537 of 65536 B\)"),
        ({"threads": 1088}, r"threads \(1088 of 1024"),
        ({"vgprs": 520}, "VGPRs"),
        ({"vgprs": 512}, "VGPRs"),  # 8 waves, and only 4 fit
    ],
)
def test_what_does_not_fit_is_named(change, short):
    with pytest.raises(ReplayError, match=short):
        workgroups_per_cu(resources(**change), gpu("mi300x"))


def test_check_order_returns_contiguous_int64():
    order = check_order(np.arange(8, dtype=np.uint16)[::-1], 8)
    assert order.dtype == np.int64
    assert order.flags.c_contiguous
    assert order.tolist() == [7, 6, 5, 4, 3, 2, 1, 0]
