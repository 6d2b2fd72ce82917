"""Attention, forward, with grouped queries: H query heads share HKV key and value heads in runs of H / HKV.

The default has the head counts of Llama 3 70B (64 and 8, D = 128) at 4096 tokens.
"""

from __future__ import annotations

from benchmarks.suite import flash_attention
from swizzle_sim.kernels import Kernel

SHARING = """\
Workgroup (m, n) reads BLOCK_M rows of Q of query head n, all of K and V of key head n // (H / HKV) (up to the diagonal
if CAUSAL), BLOCK_N rows of each a step, and writes BLOCK_M rows of O. The workgroups of the H / HKV query heads of one
key head, a run of columns of the grid, share K and V; nothing else is shared. In a batch of several, columns go on with
the next sequence's heads."""


def attention_gqa(
    *,
    B: int = 1,
    H: int = 64,
    HKV: int = 8,
    S: int = 4096,
    D: int = 128,
    CAUSAL: bool = False,
    BLOCK_M: int = 128,
    BLOCK_N: int = 64,
) -> Kernel:
    """Grouped-query attention in fp16, forward.

    Parameters
    ----------
    B, H, HKV, S, D : int
        Q and O are (B, H, S, D), K and V (B, HKV, S, D); HKV divides H, D is a power of two from 16 to 256.
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
        If HKV does not divide H, a block or D is no power of two in range, or the problem is too large to trace.
    """
    sizes = {"B": B, "H": H, "HKV": HKV, "S": S, "D": D, "CAUSAL": int(CAUSAL), "BLOCK_M": BLOCK_M, "BLOCK_N": BLOCK_N}
    return flash_attention.make("attention_gqa", "attention, fp16, query heads share keys in groups", SHARING, sizes)
