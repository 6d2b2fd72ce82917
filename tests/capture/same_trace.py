"""Check a hand-written access model against the capture of its Triton kernel: ``assert_same_trace(softmax(M=37))``.

Pass all sizes at once: they are captured in one process. Workgroup by workgroup each tensor instruction must touch the
same lines in the same order, with the same sectors, L1 requests of waves, direction and tensor. Choose small and ragged
sizes, some that end in the middle of a line, and a grid of one workgroup.
"""

import importlib.util
import sys

import numpy as np
import pytest

from swizzle_sim.capture.capture import capture_all

needs_triton = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None or sys.platform != "linux", reason="Triton has wheels for Linux only"
)


def assert_same_trace(*kernels, line_bytes=128):
    """Compare ``kernel.build_trace`` with the capture of ``kernel.launch``, for each kernel."""
    captured = capture_all([kernel.launch for kernel in kernels], line_bytes=line_bytes)
    for kernel, found in zip(kernels, captured, strict=True):
        name = f"{kernel.name} {dict(kernel.problem)}"
        assert_equal_traces(kernel.build_trace(line_bytes), found.trace, name)


def assert_equal_traces(model, real, name=""):
    """Compare two traces workgroup by workgroup; ``model`` is what was written by hand, ``real`` what was captured."""
    assert model.n_workgroups == real.n_workgroups, (
        f"{name}: workgroups: model {model.n_workgroups}, kernel {real.n_workgroups}"
    )
    places = [[(t.base_line, t.n_lines, t.size_bytes) for t in trace.tensors] for trace in (model, real)]
    assert places[0] == places[1], f"{name}: tensors (base line, lines, bytes): model {places[0]}, kernel {places[1]}"
    same = {}
    for workgroup in range(model.n_workgroups):
        ours, theirs = (range(int(t.start[workgroup]), int(t.start[workgroup + 1])) for t in (model, real))
        for i, (a, b) in enumerate(zip(ours, theirs, strict=False)):
            key = (int(model.template[a]), int(real.template[b]), int(model.base[a] - real.base[b]))
            if key not in same:
                same[key] = difference(model, a, real, b)
            assert not same[key], f"{name}: workgroup {workgroup}, instruction {i}: {same[key]}"
        assert len(ours) == len(theirs), (
            f"{name}: workgroup {workgroup}: instructions: model {len(ours)}, kernel {len(theirs)}"
        )


def difference(model, a, real, b):
    """First way in which two instructions differ; None where they do not."""
    for part, ours, theirs in zip(
        ("tensor", "is_write", "lines", "sectors", "wave_requests"),
        instruction(model, a),
        instruction(real, b),
        strict=True,
    ):
        if not np.array_equal(ours, theirs):
            return f"{part}: model {ours}, kernel {theirs}"
    return None


def instruction(trace, i):
    """Tensor, direction, lines, sectors and waves' requests of one instruction."""
    template = int(trace.template[i])
    span = slice(int(trace.rel_start[template]), int(trace.rel_start[template + 1]))
    return (
        int(trace.tensor[template]),
        bool(trace.is_write[template]),
        trace.base[i] + trace.rel[span],
        trace.sectors[span],
        trace.wave_requests[span],
    )
