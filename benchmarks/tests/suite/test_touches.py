"""Do the access models of the suite touch what each of their elements needs, and are drawn kernels drawn as said?"""

import numpy as np
import pytest

from benchmarks.tests.suite.sizes import CASES, case_id
from benchmarks.tests.suite.touches import KERNELS, touches
from swizzle_benchmarks.suite.moe_gemm import moe_gemm
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


def test_causal_attention_reads_half_the_keys():
    full, causal = (kernel("attention", H=2, S=1024, CAUSAL=c) for c in (0, 1))
    assert causal.grid == full.grid
    assert causal.flops == pytest.approx(full.flops / 2, rel=0.01)
    # query block i of 128 reads 2 (i + 1) of 16 key blocks
    assert causal.build_trace(128).n_instructions == 2 * sum(2 + 2 * 2 * (i + 1) for i in range(8))
    assert causal.issued_flops == full.issued_flops * (2 * sum(range(1, 9))) / (8 * 16)


def test_spmv_structure_has_the_density_asked_for():
    work = kernel("spmv")
    inputs = work.make_inputs(0)
    items = inputs["indices"].size
    mean, spread = 4096 * 328, (4096 * 4096 * 0.08 * 0.92) ** 0.5
    assert abs(items - mean) < 5 * spread
    assert inputs["indptr"][0] == 0
    assert inputs["indptr"][-1] == items
    row = np.repeat(np.arange(4096), np.diff(inputs["indptr"]))
    place = row * 4096 + inputs["indices"].astype(np.int64)
    assert np.all(np.diff(place) > 0)  # ascending, none twice
    counts = np.bincount(inputs["indices"], minlength=4096)
    assert abs(counts.mean() - 328) < 1
    assert counts.std() == pytest.approx((4096 * 0.08 * 0.92) ** 0.5, rel=0.1)
    assert all(np.array_equal(inputs[name], work.make_inputs(1)[name]) for name in ("indptr", "indices"))
    assert not np.array_equal(inputs["values"], work.make_inputs(1)["values"])


def test_lengths_are_drawn_by_their_seed_from_zipf_weights():
    def moe(**sizes):
        small = {"TOKENS": 64, "EXPERTS": 8, "TOPK": 2, "N": 256, "K": 128, "BLOCK_M": 16, "BLOCK_N": 64}
        return kernel("moe_gemm", **small | sizes)

    drawn = [moe_gemm.at(moe(SEED=seed).problem).lengths for seed in (1, 1, 2)]
    assert (drawn[0] == drawn[1]).all() and (drawn[0] != drawn[2]).any()
    assert all(one.sum() == 64 * 2 and one.max() <= 64 for one in drawn)
    even, skewed = (
        np.mean([moe_gemm.at(moe(SEED=s, ZIPF=z, TOKENS=500).problem).lengths.max() for s in range(1, 30)])
        for z in (1, 200)
    )
    assert even < 1.4 * 500 * 2 / 8 and skewed > 2.5 * 500 * 2 / 8
