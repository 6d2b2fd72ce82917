"""Every count and time of a few small replays, as JSON: ``python -m tests.plain_replays``.

`tests.unit.test_plain_model` runs it on a copy of the model that was changed on disk, as plain Python
(NUMBA_DISABLE_JIT=1), and compares.
"""

import dataclasses
import json
import warnings

import numpy as np

from tests.machines import gemm_trace, small_gpu
from xcd_model import IssueModel, TraceBuilder, prepare, replay_lockstep, replay_timed
from xcd_model.spec.nvidia import HbmBanks, L2Partitions


def stencil_trace():
    """Rows that overlap, so that no tile has its lines to itself and L1s are replayed line by line."""
    build = TraceBuilder(n_workgroups=8, line_bytes=128)
    x = build.array("x", rows=18, cols=128, item_bytes=2)
    y = build.array("y", rows=16, cols=128, item_bytes=2)
    row, col = 2 * np.arange(8), 0
    build.step(*(build.read(x, row=row + up, col=col, rows=2, cols=96) for up in range(3)))
    build.step(build.write(y, row=row, col=col, rows=2, cols=64), build.read(x, row=0, col=0, rows=3, cols=128))
    return build.trace()


def nvidia_gpu():
    """Two partitions, half lines, rows of memory, read-write turnaround, a gap between workgroups."""
    small = small_gpu(xcds=1, cus=4, l1=(2, 3), l2=(8, 2), mall=None, halves=True, read=32, write=32)
    return dataclasses.replace(
        small,
        l2_partitions=L2Partitions(coherence_bits=128 * 5, cu_groups=2, remote_ns=90.0),
        hbm_rows=HbmBanks(block_bytes=256, blocks=2, stretch_blocks=4, open_rows=8, read_ps=20e3, write_ps=30e3),
        hbm=dataclasses.replace(small.hbm, turnaround_ns=230.0),
        limits=dataclasses.replace(small.limits, workgroup_gap_ns=183.0),
    )


GPUS = {
    "hashed sets": lambda: small_gpu(xcds=3, l1=(2, 2), l2=(16, 2, (4, 2)), mall=(32, 2), reads=9, offset=1),
    "sets by modulo": lambda: small_gpu(l1=(3, 3), l2=(12, 3), mall=(24, 3)),
    "more ways than a vector": lambda: small_gpu(l1=None, l2=(2, 17), mall=(2, 18)),
    "plain sets": lambda: small_gpu(l1=None, l2=(32, 4), mall=(64, 4)),
    "few sets": lambda: small_gpu(l1=None, l2=(4, 8), mall=(16, 2)),
    "nvidia": nvidia_gpu,
}
ISSUE = {"in_flight": 3, "compute_fs": 5 * 10**8, "jitter_fs": 10**6, "seed": 2, "speed_variation": 4000}
TRACES = {"gemm": lambda: gemm_trace(128, 128, 128, 32, 64, 64), "stencil": stencil_trace}


def counts_of(traffic):
    """All that a replay found, but for how it found it."""
    found = {
        field.name: getattr(traffic, field.name)
        for field in dataclasses.fields(traffic)
        if field.name != "simulated_fraction"
    }
    return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in found.items()}


def replays(gpu_name, trace_name, programs=None):
    """Counts of both replays of one trace on one GPU, in an order that is no launch order."""
    device, trace = GPUS[gpu_name](), TRACES[trace_name]()
    plan, order = prepare(trace, device, programs=programs), np.random.default_rng(1).permutation(trace.n_workgroups)
    issue = IssueModel(**ISSUE)
    found = {
        "lockstep": counts_of(replay_lockstep(plan, order, workgroups_per_cu=2)),
        "timed": counts_of(replay_timed(plan, order, workgroups_per_cu=2, issue=issue)),
        "timed, one a CU": counts_of(replay_timed(plan, order, workgroups_per_cu=1, issue=issue)),
    }
    return json.loads(json.dumps(found, default=int))


def everything():
    """`replays` of all pairs, and of a persistent kernel."""
    found = {f"{trace} on {device}": replays(device, trace) for device in GPUS for trace in TRACES}
    return found | {"persistent": replays("hashed sets", "gemm", programs=5)}


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # hashes overflow on purpose
    print(json.dumps(everything()))
