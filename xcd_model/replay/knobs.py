"""Knobs beside the order of workgroups: the direction of a kernel's main loop, and which loads stream through the L2.

    loop forwards    [ q ] k0 v0 | k1 v1 | k2 v2 [ o ]
    backwards        [ q ] k2 v2 | k1 v1 | k0 v0 [ o ]       the trips change places, each trip stays as it is

Where every other workgroup walks its loop backwards (a sawtooth), it begins with the lines that its predecessor touched
last, which the L2 still has. A streamed load leaves its lines the first of their set to be evicted, hit or miss: what
a non-temporal load asks for. That hardware does just this is assumed: neither AMD nor NVIDIA documents where such a
line stands among the others.

Source: Sawtooth Wavefront Reordering (arXiv 2601.16032) for the alternating direction; AMD CDNA 3 ISA, NT bit, and PTX
ISA, ``L2::evict_first``, for streaming loads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from xcd_model.errors import TraceError, UnknownName
from xcd_model.replay.plan import Plan
from xcd_model.trace.trace import Trace


def instructions_walked(trace: Trace, backwards: np.ndarray) -> np.ndarray:
    """Order of a trace's instructions when some workgroups walk the main loop backwards.

    Parameters
    ----------
    backwards : (n_workgroups,) bool array
        Of the trace's workgroups.

    Returns
    -------
    order : (n_instructions,) int64 array
        Instruction of the trace that stands at each place.
    """
    if trace.trip.size == 0:
        raise TraceError(
            "the trace does not say which instructions are trips of a loop: its direction cannot be changed"
        )
    if backwards.shape != (trace.n_workgroups,) or backwards.dtype != bool:
        raise TraceError(
            f"backwards has shape {backwards.shape}: one truth for each of {trace.n_workgroups} workgroups"
        )
    count = np.diff(trace.start)
    turned = np.repeat(backwards, count) & (trace.trip >= 0)
    owner = np.repeat(np.arange(trace.n_workgroups), count)
    # Within a workgroup the trips of its one loop are contiguous and rise: sort them falling, all else stays.
    place = np.arange(trace.n_instructions)
    first = np.full(trace.n_workgroups, trace.n_instructions)
    np.minimum.at(first, owner[turned], place[turned])
    key = np.where(turned, first[owner], place)
    return np.lexsort((place, np.where(turned, -trace.trip, 0), key, owner)).astype(np.int64)


def with_knobs(plan: Plan, *, backwards: np.ndarray | None = None, streamed: Sequence[str] = ()) -> Plan:
    """The same plan with some loops walked backwards and some tensors' loads streamed.

    Parameters
    ----------
    backwards : (n_workgroups,) bool array, optional
        Of the trace's workgroups, or of its clusters; none where not given.
    """
    if backwards is not None:
        backwards = np.repeat(backwards, plan.machine.cluster)  # workgroups of a cluster walk the same way
    trace, stream = plan.trace, plan.stream
    names = [tensor.name for tensor in trace.tensors]
    for name in streamed:
        if name not in names:
            raise UnknownName("tensor", name, names)
    if streamed:
        stream = stream._replace(streamed=np.isin(names, list(streamed)))
    if backwards is not None and backwards.any():
        order = instructions_walked(trace, backwards)
        trace = replace(trace, base=trace.base[order], template=trace.template[order], trip=trace.trip[order])
        moved = {name: getattr(stream, name) for name in ("base", "template", "block", "multicast")}
        stream = stream._replace(**{name: array[order] if array.size else array for name, array in moved.items()})
    return replace(plan, trace=trace, stream=stream)
