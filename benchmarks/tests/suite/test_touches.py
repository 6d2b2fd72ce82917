"""Do the access models of the suite touch what each of their elements needs?"""

import pytest

from benchmarks.tests.suite.sizes import CASES, case_id
from benchmarks.tests.suite.touches import KERNELS, touches
from swizzle_sim.workload.kernels import kernel
from tests.naive_coalesce import shown, touched


@pytest.mark.parametrize("line_bytes", [64, 128])
@pytest.mark.parametrize("case", CASES, ids=case_id)
def test_access_model_is_the_element_wise_toucher(case, line_bytes):
    name, sizes = case
    work = kernel(name, **sizes)
    arrays = {argument.removesuffix("_ptr"): array for argument, array in work.launch.arrays.items()}
    found = [(key, (array.n_items, array.item_bytes)) for key, array in arrays.items()]
    assert found == [(key.lower(), one) for key, one in KERNELS[name][0](work.problem).items()]
    trace = work.build_trace(line_bytes)
    assert trace.n_workgroups == work.grid.num_pids
    for w in range(trace.n_workgroups):
        expected = touches(name, work.problem, w)
        span = range(trace.start[w], trace.start[w + 1])
        assert [trace.tensors[trace.tensor[trace.template[i]]].name for i in span] == [e[0] for e in expected]
        assert [bool(trace.is_write[trace.template[i]]) for i in span] == [e[1] for e in expected]
        for i, (_, _, addresses, item_bytes) in zip(span, expected, strict=True):
            assert shown(trace, i) == touched(addresses, item_bytes, line_bytes)
