"""Are integers that are data drawn, and those that programs count with or find their way by left at zero?"""

import numpy as np
import pytest

from swizzle_sim.hardware.bundle_files import arguments_of
from swizzle_sim.rewrite.check import _inputs
from swizzle_sim.workload.launch import Array, Launch

DATA = [("int8", -16, 16), ("uint8", 112, 143), ("int32", 0, 1), ("int64", 0, 1)]
NO_DATA = [{"is_index": True}, {"role": "inout"}, {"role": "inout", "is_counter": True}]


def launch_of(array, given=None):
    return Launch(
        path="kernel.py", function="kernel", arguments={"x": array}, constexprs={}, grid=(1,),
        make_inputs=lambda seed: given or {},
    )  # fmt: skip


@pytest.mark.parametrize(("dtype", "least", "most"), DATA)
def test_data_takes_every_value_of_its_range(dtype, least, most):
    array = Array(shape=(64, 64), dtype=dtype)
    drawn = _inputs(launch_of(array), 3)["x"]
    assert (drawn.min(), drawn.max()) == (least, most)
    assert np.iinfo(dtype).min <= least and most <= np.iinfo(dtype).max
    np.testing.assert_array_equal(drawn, _inputs(launch_of(array), 3)["x"])
    ((_, about),), files = arguments_of(launch_of(array), 3)
    assert about["array"]["make"] == {"how": "uniform", "low": least, "high": most + 1} and not files


@pytest.mark.parametrize("role", NO_DATA)
def test_indices_counters_and_locks_begin_at_zero(role):
    array = Array(shape=(64,), dtype="int32", **role)
    assert not _inputs(launch_of(array), 3)["x"].any()
    ((_, about),), files = arguments_of(launch_of(array), 3)
    assert about["array"]["make"]["how"] == "file" and not any(files["inputs/x.bin"])


def test_what_the_kernel_gives_is_taken():
    given = np.arange(64, dtype=np.int8)
    launch = launch_of(Array(shape=(64,), dtype="int8"), {"x": given})
    np.testing.assert_array_equal(_inputs(launch, 3)["x"], given)
    assert arguments_of(launch, 3)[1]["inputs/x.bin"] == given.tobytes()
