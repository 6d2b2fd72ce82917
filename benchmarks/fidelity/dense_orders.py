"""Orders of dense attention: which query block, head and batch each workgroup of AMD's rocke kernels computes.

An order is its digits, fastest first: Q query block, B batch, V key head, G query head of its key head's; X is the band
of query heads that an XCD owns and Y a head of it; P is a block of the lower half, paired with its mirror image by the
half Z; L and W are the two parts of G.

Source: ROCm/rocm-libraries 65d3e7a, rocke: sections 2.5 and 5 of the case study of its thread-block mapping, and
library/kernels/common/attention_dense_decode.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from xcd_model.errors import UnknownName


class Order(NamedTuple):
    """Digits of an order, and which way through the query blocks it goes where a mask is causal and where not."""

    digits: str
    causal: str = "up"
    full: str = "up"


ORDERS: dict[str, Order] = {
    "launched qb_minor": Order("QGVB"),
    "launched bt_hkv_minor": Order("BVGQ", "down"),
    "launched hq_minor_swz": Order("XQYB", "down"),
    "persistent qb_major": Order("BGVQ"),
    "persistent bt_hkv_minor": Order("BVGQ", "fold"),
    "persistent hkv_major": Order("BGQV", "fold", "fold"),
    "persistent gqa_pair": Order("LBVPWZ"),
    "persistent gqa_pair_2phase": Order("GBVPZ"),
}
WAYS = {
    "up": lambda block, count: block,
    "down": lambda block, count: count - 1 - block,
    "fold": lambda block, count: np.where(block < count // 2, block, count - 1 - (block - count // 2)),
}


def items_of(name: str, size: Mapping[str, int], xcds: int) -> np.ndarray:
    """Item that each id of a launched or persistent grid computes, numbered query block fastest, then head, then batch.

    Parameters
    ----------
    name : str
        A key of `ORDERS`.
    size : mapping of str to int
        B, H, HKV, S, BM and CAUSAL.
    xcds : int

    Returns
    -------
    item : (B * H * query blocks,) int64

    Raises
    ------
    UnknownName
        If there is no such order.
    """
    if name not in ORDERS:
        raise UnknownName("order of dense attention", name, ORDERS)
    order, blocks, heads, shared = ORDERS[name], -(-size["S"] // size["BM"]), size["H"], size["H"] // size["HKV"]
    counts = {"Q": blocks, "G": shared, "V": size["HKV"], "B": size["B"], "X": xcds, "Y": heads // xcds}
    counts |= {"P": blocks // 2, "Z": 2, "L": 2, "W": shared // 2}
    digit = {}
    left = np.arange(blocks * heads * size["B"], dtype=np.int64)
    for letter in order.digits:
        left, digit[letter] = np.divmod(left, counts[letter])
    if "P" in digit:
        block = np.where(digit["Z"] == 0, digit["P"], blocks - 1 - digit["P"])
    else:
        block = WAYS[order.causal if size["CAUSAL"] else order.full](digit["Q"], blocks)
    if "X" in digit:
        head = digit["X"] * counts["Y"] + digit["Y"]
    else:
        head = digit["V"] * shared + (digit["G"] if "G" in digit else digit["L"] * counts["W"] + digit["W"])
    return (digit["B"] * heads + head) * blocks + block
