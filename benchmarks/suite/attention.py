"""Attention, forward, every query head with its own keys and values: FlashAttention-2's grid of blocks and heads.

The default is the head count at which arXiv 2511.02132 saw most on MI300X (H = 128, D = 128), at 4096 tokens instead of
its 2K to 128K, so that a replay takes about a second: K and V of a head are 2 MiB, of the 16 heads that block-first
runs at once on an XCD 32 MiB, eight times its L2.
"""

from __future__ import annotations

from benchmarks.suite import flash_attention
from swizzle_sim.kernels import Kernel

SHARING = """\
Workgroup (m, n) reads BLOCK_M rows of Q of head n, all of K and V of head n (up to the diagonal if CAUSAL), BLOCK_N
rows of each a step, and writes BLOCK_M rows of O. The workgroups of one head, a column of the grid, share K and V; two
heads share nothing, and Q and O are touched once. Workgroups of a head that run at the same time on one XCD march
through K and V together; heads that run beside them on that XCD compete for its L2."""


def attention(
    *,
    B: int = 1,
    H: int = 128,
    S: int = 4096,
    D: int = 128,
    CAUSAL: bool = False,
    BLOCK_M: int = 128,
    BLOCK_N: int = 64,
) -> Kernel:
    """Multi-head attention in fp16, forward.

    Parameters
    ----------
    B, H, S, D : int
        Q, K, V and O are (B, H, S, D); D is a power of two from 16 to 256.
    CAUSAL : bool
        Whether a query sees only the keys up to its own.
    BLOCK_M, BLOCK_N : int
        Queries of a workgroup and keys of a step; powers of two from 16 to 1024.

    Returns
    -------
    Kernel

    Raises
    ------
    SizeError
        If a block or D is no power of two in range, or the problem is too large to trace.
    """
    problem = {"B": B, "H": H, "S": S, "D": D, "CAUSAL": int(CAUSAL), "BLOCK_M": BLOCK_M, "BLOCK_N": BLOCK_N}
    return flash_attention.make("attention", "softmax(Q K^T) V, fp16, one query block of a head", SHARING, problem)
