"""Does a raw schedule count what its workgroups do: as the replay for a permutation, by hand for a repeated tile?"""

import dataclasses

import numpy as np
import pytest

from swizzle_benchmarks.validation.workloads.schedules import raw_trace, replay_raw
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.workload.kernels import kernel
from xcd_model import gpu
from xcd_model.errors import TraceError

MI300X = gpu("mi300x")


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("stencil_2d", {"M": 512, "N": 256}),
        ("spmv", {"M": 100, "N": 500, "NNZ_PER_ROW": 20}),
        ("fdtd_2d", {"Nx": 256, "Ny": 96}),
    ],
)
def test_a_permutation_counts_as_in_the_replay(name, sizes):
    work = kernel(name, **sizes)
    order = np.random.default_rng(5).permutation(work.grid.num_pids)
    wanted = Scorer(work, MI300X, replay="lockstep").traffic(order)
    found = replay_raw(work, MI300X, order)
    np.testing.assert_array_equal(found.per_xcd, wanted.per_xcd)
    assert (found.launch, found.steady) == (wanted.launch, wanted.steady)


def test_the_same_row_again_and_again_misses_once_an_xcd():
    work = kernel("softmax", M=64, N=512)  # a row is eight lines, read once and written in two halves
    machine = dataclasses.replace(MI300X, l1i=None)
    found = replay_raw(work, machine, np.zeros(64, np.int64))
    assert found.l2_requests == 64 * 8 * 3
    assert found.l2_misses == 8 * 8 * 2
    assert replay_raw(work, machine, np.arange(64)).l2_misses == 64 * 8 * 2


def test_workgroups_keep_what_they_do():
    trace = kernel("stencil_2d", M=128, N=96).build_trace(128)
    tiles = np.array([5, 0, 5])
    raw = raw_trace(trace, tiles)
    assert raw.n_workgroups == 3
    for w, tile in enumerate(tiles):
        mine, given = slice(raw.start[w], raw.start[w + 1]), slice(trace.start[tile], trace.start[tile + 1])
        np.testing.assert_array_equal(raw.base[mine], trace.base[given])
        np.testing.assert_array_equal(raw.template[mine], trace.template[given])


@pytest.mark.parametrize(
    ("tiles", "says"),
    [(np.array([0, 12]), "workgroup 1 computes tile 12"), (np.array([-1]), "tile -1"), (np.array([0.5]), "integers")],
)
def test_a_tile_outside_the_grid_has_no_trace(tiles, says):
    with pytest.raises(TraceError, match=says):
        raw_trace(kernel("stencil_2d", M=128, N=96).build_trace(128), tiles)
