"""The counts of a replay, level by level: what each was asked, what it had, what it passed on."""

from __future__ import annotations

from typing import Any

import numpy as np

from xcd_model.replay.traffic import (
    L1_HITS,
    L1_REQUESTS,
    MALL_HITS,
    MALL_REQUESTS,
    READ_MISSES,
    READ_REQUESTS,
    WRITE_MISSES,
    WRITE_REQUESTS,
    WRITEBACKS,
    Traffic,
)


def levels(counts: np.ndarray, *, fetch_bytes: int, write_request_bytes: int) -> dict[str, dict[str, int]]:
    """Requests, hits, misses and bytes of each level.

    Parameters
    ----------
    counts : (n_columns,) int64
        Columns of `xcd_model.replay.traffic.COLUMNS`.
    fetch_bytes, write_request_bytes : int [bytes]

    Returns
    -------
    levels : dict
        ``l1``: reads of the waves; writes go past it. ``l2``: as TCC_REQ, TCC_HIT and TCC_MISS count, with
        ``writebacks`` in write requests. ``mall``: line fills, with the write requests that pass through. ``hbm``:
        bytes. ``read_bytes`` and ``write_bytes`` are what a level takes from, or gives to, the one behind it.
    """
    c = [int(value) for value in counts]
    misses = c[READ_MISSES] + c[WRITE_MISSES]
    requests = c[READ_REQUESTS] + c[WRITE_REQUESTS]
    written = c[WRITEBACKS] * write_request_bytes
    from_hbm = (c[READ_MISSES] - c[MALL_HITS]) * fetch_bytes
    return {
        "l1": {"requests": c[L1_REQUESTS], "hits": c[L1_HITS], "misses": c[L1_REQUESTS] - c[L1_HITS]},
        "l2": {
            "requests": requests,
            "read_requests": c[READ_REQUESTS],
            "write_requests": c[WRITE_REQUESTS],
            "hits": requests - misses,
            "misses": misses,
            "writebacks": c[WRITEBACKS],
            "read_bytes": c[READ_MISSES] * fetch_bytes,
            "write_bytes": written,
        },
        "mall": {
            "requests": c[MALL_REQUESTS],
            "hits": c[MALL_HITS],
            "misses": c[MALL_REQUESTS] - c[MALL_HITS],
            "read_bytes": from_hbm,
            "write_bytes": written,
        },
        "hbm": {"read_bytes": from_hbm, "write_bytes": written},
    }


def traffic_as_dict(traffic: Traffic) -> dict[str, Any]:
    """All counts of a replay by level: in all, for each XCD, and for each tensor; JSON-ready."""
    sizes = {"fetch_bytes": traffic.fetch_bytes, "write_request_bytes": traffic.write_request_bytes}
    return {
        "all": levels(traffic.per_xcd.sum(axis=0), **sizes),
        "per_xcd": [levels(counts, **sizes) for counts in traffic.per_xcd],
        "by_tensor": {
            name: levels(counts, **sizes)
            for name, counts in zip(traffic.tensors, traffic.by_tensor.sum(axis=1), strict=True)
        },
        "launch": traffic.launch,
        "steady": traffic.steady,
    }
