"""A timed replay as a trace for ui.perfetto.dev: each workgroup a slice on its CU's slot, L2 misses as counters.

The format is the JSON of Chrome's trace events, times in us: a process an XCD, a thread a slot of a CU.

Source: Trace Event Format, https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from xcd_model import Gpu, Traffic
from xcd_model.dispatch import seat_of
from xcd_model.replay.traffic import READ_MISSES, READ_REQUESTS, WRITE_MISSES, WRITE_REQUESTS


def perfetto_trace(spans: np.ndarray, order: np.ndarray, traffic: Traffic, gpu: Gpu, title: str) -> str:
    """Trace of one timed replay, as text.

    spans : (num_pids, 5) int64 [fs, fs, slot, requests, requests], -1 of workgroups that touch nothing: left out
    order : (num_pids,) int, tile that each workgroup computes
    """
    events = [*_names(spans, gpu)]
    for pid, ((begin, end, slot, requests, misses), tile) in enumerate(
        zip(spans.tolist(), order.tolist(), strict=True)
    ):
        if slot >= 0:
            xcd = seat_of(slot, gpu.xcds, gpu.cus_per_xcd).xcd
            at = {"pid": xcd, "tid": slot, "ts": begin / 1e9, "dur": (end - begin) / 1e9}
            told = {"tile": tile, "L2 requests": requests, "L2 misses": misses}
            events.append({"name": f"workgroup {pid}", "ph": "X", **at, "args": told})
    events += _misses(traffic)
    about = {"title": title, "kind": "simulated, timed replay; not a measurement"}
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ns", "otherData": about}, separators=(",", ":"))


def _names(spans: np.ndarray, gpu: Gpu) -> Iterator[dict[str, Any]]:
    for xcd in range(gpu.xcds):
        yield {"name": "process_name", "ph": "M", "pid": xcd, "args": {"name": f"XCD {xcd}"}}
    for slot in np.unique(spans[spans[:, 2] >= 0, 2]).tolist():
        seat = seat_of(slot, gpu.xcds, gpu.cus_per_xcd)
        name = f"CU {seat.cu:02d}" + (f" slot {seat.row}" if spans[:, 2].max() >= gpu.xcds * gpu.cus_per_xcd else "")
        at = {"pid": seat.xcd, "tid": slot}
        yield {"name": "thread_name", "ph": "M", **at, "args": {"name": name}}
        yield {"name": "thread_sort_index", "ph": "M", **at, "args": {"sort_index": seat.cu * 64 + seat.row}}


def _misses(traffic: Traffic) -> Iterator[dict[str, Any]]:
    """Hit rate and misses of each XCD's L2 in each bin of time."""
    counts = traffic.timeline
    misses = counts[:, :, READ_MISSES] + counts[:, :, WRITE_MISSES]
    requests = counts[:, :, READ_REQUESTS] + counts[:, :, WRITE_REQUESTS]
    for at, xcd in np.ndindex(*misses.shape):
        now = {"ph": "C", "pid": xcd, "ts": at * traffic.bin_width}
        yield {"name": "L2 misses", **now, "args": {"misses": int(misses[at, xcd])}}
        if asked := int(requests[at, xcd]):
            rate = 100 * (1 - int(misses[at, xcd]) / asked)
            yield {"name": "L2 hit rate [%]", **now, "args": {"percent": round(rate, 2)}}
