"""Is each access model of the suite, line by line, what its kernel does?"""

from swizzle_benchmarks.suite.gemm import gemm
from tests.capture.same_trace import assert_same_trace, needs_triton


@needs_triton
def test_gemm_access_model_is_the_kernel():
    blocks = {"BLOCK_M": 32, "BLOCK_N": 64, "BLOCK_K": 16}
    assert_same_trace(
        gemm(M=128, N=256, K=64, **blocks),
        gemm(M=100, N=130, K=50, **blocks),
        gemm(M=1, N=1, K=1, **blocks),
        gemm(M=97, N=203, K=31, BLOCK_M=16, BLOCK_N=16, BLOCK_K=64),
        gemm(M=511, N=300, K=257, BLOCK_M=128, BLOCK_N=256, BLOCK_K=64),
    )
