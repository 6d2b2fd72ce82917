"""Are integers that are data drawn, and those that programs count with left at zero?"""

import numpy as np
import pytest

from swizzle_sim.capture.memory import AddressSpace, real_items
from swizzle_sim.hardware.bundle import arguments_of
from swizzle_sim.workload.launch import Array, Launch

DATA = [("int8", -16, 16), ("uint8", 112, 143), ("int32", 0, 1), ("int64", 0, 1)]
NO_DATA = [{"role": "inout"}, {"role": "inout", "is_counter": True}]


def launch_of(array, given=None):
    return Launch(
        path="kernel.py", function="kernel", arguments={"x": array}, constexprs={}, grid=(1,),
        make_inputs=lambda seed: given or {},
    )  # fmt: skip


def items_of(launch):
    made = {name: np.asarray(value) for name, value in launch.make_inputs(3).items()}
    return real_items(AddressSpace.place(launch.storage), made, everything=True, seed=3)[0]


@pytest.mark.parametrize(("dtype", "least", "most"), DATA)
def test_data_takes_every_value_of_its_range(dtype, least, most):
    array = Array(shape=(64, 64), dtype=dtype)
    drawn = items_of(launch_of(array))
    assert (drawn.min(), drawn.max()) == (least, most)
    assert np.iinfo(dtype).min <= least and most <= np.iinfo(dtype).max
    np.testing.assert_array_equal(drawn, items_of(launch_of(array)))
    ((_, about),), files = arguments_of(launch_of(array), 3)
    assert about["array"]["make"] == {"how": "uniform", "low": least, "high": most + 1} and not files


@pytest.mark.parametrize("role", NO_DATA)
def test_counters_and_locks_begin_at_zero(role):
    array = Array(shape=(64,), dtype="int32", **role)
    assert not items_of(launch_of(array)).any()
    ((_, about),), files = arguments_of(launch_of(array), 3)
    assert about["array"]["make"]["how"] == "file" and not any(files["inputs/x.bin"])


def test_what_the_kernel_gives_is_taken():
    given = np.arange(64, dtype=np.int8)
    launch = launch_of(Array(shape=(64,), dtype="int8"), {"x": given})
    np.testing.assert_array_equal(items_of(launch), given)
    assert arguments_of(launch, 3)[1]["inputs/x.bin"] == given.tobytes()
