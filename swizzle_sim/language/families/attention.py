"""Orders for attention: query blocks are the rows of the tile grid, heads its columns.

That is FlashAttention-2's launch, ``(cdiv(S, BLOCK_M), batch * heads)``. The workgroups of one head share its K and
V, so the L2 hit rate depends on the number of heads that one L2 serves at a time. Heads of a batch are consecutive
columns.
"""

from __future__ import annotations

from swizzle_sim.language.families.family import Family, Parameter
from swizzle_sim.language.families.order import group_n_text
from swizzle_sim.language.families.placement import contiguous_text


def _block_first() -> str:
    return "pid_m = pid // num_pid_n\npid_n = pid % num_pid_n\n"


def _block_first_swizzled() -> str:
    # The remap of `contiguous` on the head alone; it names an XCD only where ids of a block start at XCD 0.
    return """\
head = pid % num_pid_n
xcd = head % num_xcds
pid_m = pid // num_pid_n
pid_n = xcd * (num_pid_n // num_xcds) + min(xcd, num_pid_n % num_xcds) + head // num_xcds
"""


def _head_first() -> str:
    return "pid_m = pid % num_pid_m\npid_n = pid // num_pid_m\n"


def _head_first_swizzled() -> str:
    return """\
local = pid // num_xcds
pid_m = local % num_pid_m
pid_n = (pid % num_xcds) * (num_pid_n // num_xcds) + local // num_pid_m
"""


def _head_groups(size: int, walk: int | str) -> str:
    return contiguous_text() + group_n_text(size, walk)


PAPER = "arXiv 2511.02132"

ATTENTION = (
    Family(
        name="block_first",
        summary="Block 0 of every head, then block 1: an XCD serves every num_xcds-th head at once. The same as row.",
        text=_block_first,
        source=f"{PAPER} (naive block-first); AITER attention, head = id % heads",
        axes=2,
    ),
    Family(
        name="block_first_swizzled",
        summary="As block_first, but the heads of one XCD are neighbours, if num_pid_n is a multiple of num_xcds.",
        text=_block_first_swizzled,
        source=f"{PAPER} (swizzled block-first); AITER attention, remap_xcd on the head",
        axes=2,
    ),
    Family(
        name="head_first",
        summary="All blocks of head 0, then of head 1: every XCD serves every running head. The same as column.",
        text=_head_first,
        source=f"{PAPER} (naive head-first); launch of FlashAttention-2 and Triton tutorial 06",
        axes=2,
    ),
    Family(
        name="head_first_swizzled",
        summary="Consecutive heads on one XCD, one after the other. Elsewhere contiguous+column is exact.",
        text=_head_first_swizzled,
        source=f"{PAPER} (swizzled head-first); AITER pull requests 864 and 3936",
        axes=2,
        # Otherwise some XCD gets more heads than its share, and two XCDs compute the same tile.
        condition="num_pid_n % num_xcds == 0 or num_pids == 1",
    ),
    Family(
        name="head_groups",
        summary="Consecutive heads on one XCD, `size` of them at a time, block by block: the heads that share K and V.",
        text=_head_groups,
        source="AITER pull request 3936 (grouped-query path), made exact for any number of heads",
        parameters={
            "size": Parameter(8, 1, 65536, "query heads that share one K and V"),
            "walk": Parameter(
                1, 1, 3, "1 first block first, 2 last first: longest first if causal, 3 last and first in turn"
            ),
        },
        axes=2,
    ),
)
