"""FDTD as it was measured: what its stores are compiled to, and what the L2 is asked for."""

import subprocess
import sys

import numpy as np
import pytest

from swizzle_benchmarks.lab import compiled_code
from swizzle_benchmarks.suite.fdtd_2d import fdtd_2d
from swizzle_benchmarks.validation.rows import all_rows
from swizzle_benchmarks.validation.workloads import fdtd
from swizzle_benchmarks.validation.workloads.from_row import workload
from xcd_model import TraceBuilder, gpu, prepare, replay_lockstep
from xcd_model.replay.traffic import WRITE_MISSES, WRITE_REQUESTS

PROBLEM = {"Nx": 64, "Ny": 64, "BLOCK_SIZE_X": 32, "BLOCK_SIZE_Y": 32}


def test_stores_are_those_that_triton_makes_of_such_masks():
    """In a process of its own, where nothing is interpreted. A store is 4 items a lane: eight of one, one of four."""
    pytest.importorskip("triton")
    command = [sys.executable, "-m", "swizzle_benchmarks.lab", "fdtd-stores"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    assert sorted(done.stdout.splitlines()) == ["1 global_store_dwordx4", "8 global_store_dword"]
    assert sum(fdtd.STORES) == 9 and fdtd.STORES.count(1) == 1


def test_without_triton_a_line_says_what_to_install(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(SystemExit, match=r"Triton is not installed: pip install 'swizzle-sim\[triton\]'"):
        compiled_code.fdtd_stores()


def test_every_instruction_of_a_store_asks_for_all_lines():
    """4 tiles of 3 fields of 32 rows of 128 B, two requests of 64 B a line. All were read before: none misses."""
    for stores, times in (((1, 1, 1), 3), (fdtd.STORES, 9)):
        traffic = replay_lockstep(
            prepare(fdtd_2d.tracer(PROBLEM, stores=stores)(128), gpu("mi300x")), np.arange(4), workgroups_per_cu=1
        )
        assert traffic.total(WRITE_REQUESTS) == 4 * times * 32 * 2
        assert traffic.total(WRITE_MISSES) == 0


@pytest.mark.parametrize("times", [1, 4])
def test_only_the_first_instruction_of_a_store_can_miss(times):
    """One workgroup stores 32 rows of 128 B that it has not read: a line misses once, its other requests hit."""
    build = TraceBuilder(n_workgroups=1, line_bytes=128)
    field = build.array("hz", rows=32, cols=1024, item_bytes=4)
    store = build.write(field, row=np.zeros(1, np.int64), col=0, rows=32, cols=32)
    build.step(build.together(*[store] * times))
    traffic = replay_lockstep(prepare(build.trace(), gpu("mi300x")), np.arange(1), workgroups_per_cu=1)
    assert (traffic.total(WRITE_REQUESTS), traffic.total(WRITE_MISSES)) == (32 * 2 * times, 32)


def test_rows_of_fdtd_are_replayed_with_such_stores():
    row = next(row for row in all_rows() if row.id == "paper/fdtd_2d@128x128:fdx")
    built, plain = workload(row).build_trace(128), fdtd_2d.tracer(row.problem)(128)
    assert built.n_instructions == plain.n_instructions  # stores of one tile are one instruction
    requests = [
        replay_lockstep(prepare(one, gpu("mi300x")), np.arange(128**2), workgroups_per_cu=8) for one in (built, plain)
    ]
    assert [one.total(WRITE_REQUESTS) for one in requests] == [128**2 * 32 * 2 * times for times in (9, 3)]
