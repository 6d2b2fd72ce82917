"""A small kernel with room for orders to matter, and a GPU on which they do."""

import pytest

from swizzle_benchmarks.suite.gemm import gemm
from swizzle_sim.search.what_if import what_if
from xcd_model import gpu


@pytest.fixture(scope="session")
def tight():
    """L2s so small that no order reaches the bound."""
    return what_if(gpu("mi355x"), {"l2.size_bytes": 64 * 2**10, "cus_per_xcd": 4})


@pytest.fixture(scope="session")
def small():
    """16 x 16 tiles, two steps each: replayed in milliseconds."""
    return gemm(M=1024, N=1024, K=128, BLOCK_M=64, BLOCK_N=64)
