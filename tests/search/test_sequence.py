"""Does a launch find in the caches what those before it left there, of the tensors that lay where its own lie?"""

import json

import numpy as np
import pytest

from swizzle_sim.capture.recording import launched_in_order
from swizzle_sim.pricing.replaying import Replayer
from swizzle_sim.search.fleet import moved, placed
from swizzle_sim.workload.kernels import kernel
from tests.search.test_fleet import recording
from xcd_model.errors import CaptureError
from xcd_model.replay.plan import replay_launches
from xcd_model.replay.timed import replay_timed

SIZE = {"M": 512, "N": 512, "K": 512, "BLOCK_M": 128, "BLOCK_N": 128}
MATRIX = {"tensor": {"shape": [512, 512], "strides": [512, 1], "dtype": "fp16"}}
MIB = 1 << 20
A, B, C, D, E = (0x7F00000000 + 2 * i * MIB for i in range(5))
BYTES = 2 * 512 * 512


@pytest.fixture
def in_sequence(tmp_path, monkeypatch, typed):
    """Steps that the command gives of GEMMs that lay at some places, each of A, B and C."""
    work = kernel("gemm", **SIZE)
    monkeypatch.setattr("swizzle_sim.search.fleet.loaded", lambda point, device: work)

    def steps(gpu, *places, json=True):
        order = [f"0 {' '.join(f'{one:x}' for one in at)}" for at in places]
        launch = {"arguments": dict.fromkeys("ABC", MATRIX)}
        (tmp_path / "calls.json").write_text(recording(launch, order=order))
        words = ("fleet", "calls.json", "--sequence", "9", "--gpu", gpu, "--orders", "1", "--no-compile")
        done = typed(*words, "--backend", "serial", *["--json"] * json)
        assert not done.code, done.err
        return done.json["sequence"] if json else done.out

    return steps


def test_a_launch_made_again_is_the_second_of_two(in_sequence, mi300x):
    one = Replayer(kernel("gemm", **SIZE), mi300x)
    order = np.arange(16)

    def once(plan, caches):
        return replay_timed(plan, order, workgroups_per_cu=one.occupancy, issue=one.issue_model, caches=caches)

    twice = [replay_launches([one.plan], once, n)[0] for n in (1, 2)]
    first, second = in_sequence("mi300x", (A, B, C), (A, B, C))
    assert (
        [one["after"]["hbm_read_bytes"] for one in (first, second)]
        == [t.hbm_read_bytes for t in twice]
        == [2 * BYTES, 0]
    )
    assert [one["after"]["time_us"] for one in (first, second)] == [one.time(t).total_us for t in twice]
    assert first["alone"] == first["after"] == second["alone"] and second["after"]["mall_hit_rate"] == 1


def test_a_consumer_finds_what_its_gpu_keeps_of_a_producer(in_sequence):
    chain = (A, B, C), (C, D, E)
    assert [one["after"]["hbm_read_bytes"] for one in in_sequence("mi300x", *chain)] == [2 * BYTES, 2 * BYTES]
    first, second = in_sequence("h100", *chain)
    assert first["after"]["hbm_read_bytes"] - second["after"]["hbm_read_bytes"] == BYTES
    assert "mall_hit_rate" not in second["after"]
    assert "2 launches: " in (said := in_sequence("h100", *chain, json=False)) and "25.0 % of their reads" in said


def test_tensors_lie_as_they_lay_but_for_wide_gaps():
    trace = kernel("gemm", **SIZE).build_trace(128)
    far = 1 << 40
    ((first, second)) = placed([(trace, {"A": 0, "B": 256, "C": far}), (trace, {"A": far + 128, "B": 0, "C": 4 * MIB})])
    assert first["B"] - first["A"] == 2 and second["A"] - first["C"] == 1
    assert (first["C"] - second["C"]) * 128 == 2 * MIB and second["C"] * 128 == 2 * MIB
    there = moved(trace, first)  # A and B, views of one, are one tensor
    assert [(one.base_line, one.n_lines) for one in there.tensors] == [(0, 4098), (first["C"], 4096)]
    assert np.array_equal(np.unique(there.tensor[there.is_write]), [1]) and there.base.max() < first["C"] + 4096
    with pytest.raises(CaptureError, match="where C lay"):
        placed([(trace, {"A": 0, "B": 0})])


@pytest.mark.parametrize("order", [None, [], ["1 1 1 1"], ["0 1"], ["0 1 1 z"], [3]])
def test_an_order_that_is_none_is_refused(order, tmp_path):
    path = tmp_path / "calls.json"
    path.write_text(recording({"arguments": dict.fromkeys("ABC", MATRIX)}, order=order))
    with pytest.raises(CaptureError, match=r"calls.json: (has no order|order = )"):
        launched_in_order(path)
    assert json.loads(path.read_text())["launches"]
