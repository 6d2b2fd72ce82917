"""Fetches of code: counted by hand, added once, and within the bound."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from swizzle_benchmarks.suite.fused_elementwise import fused_elementwise
from swizzle_sim.pricing.scoring import Scorer
from tests.machines import small_gpu
from xcd_model import gpu
from xcd_model.replay.traffic import CODE, MALL_HITS, MALL_REQUESTS, READ_MISSES, READ_REQUESTS, instruction_fetches

RESOURCES = fused_elementwise(n_elements=1 << 16).resources


@given(
    n_workgroups=st.integers(1, 40), xcds=st.integers(1, 5), cus=st.integers(1, 5), offset=st.integers(0, 4),
    code_bytes=st.integers(1, 1000), cluster=st.sampled_from([1, 1, 2, 4]),
)  # fmt: skip
def test_counts_are_those_of_caches_that_fetch_one_by_one(n_workgroups, xcds, cus, offset, code_bytes, cluster):
    machine = small_gpu(xcds=xcds, cus=cus, offset=offset % xcds)
    caches = [set() for _ in range(xcds)]
    n_workgroups *= cluster
    for w in range(n_workgroups):
        together, inside = divmod(w, cluster)  # a cluster goes to one XCD
        xcd, place = (together + machine.dispatch_offset) % xcds, together // xcds * cluster + inside
        caches[xcd].add(place % -(-cus // machine.l1i.cus))
    requests, misses = [], []
    for mine in caches:
        held, asked = set(), 0
        for _ in mine:
            for byte in range(0, -(-code_bytes // 64) * 64 + 64 * machine.l1i.prefetch_lines, 64):
                held.add(byte // 128)
                asked += 1
        requests.append(asked)
        misses.append(len(held))
    counts = instruction_fetches(machine, dataclasses.replace(RESOURCES, code_bytes=code_bytes), n_workgroups, cluster)
    assert counts[:, READ_REQUESTS].tolist() == requests
    assert counts[:, READ_MISSES].tolist() == misses == counts[:, MALL_REQUESTS].tolist()
    assert counts[:, MALL_REQUESTS].sum() - counts[:, MALL_HITS].sum() == max(misses)
    assert (counts.sum(axis=0) > 0).sum() <= 4


def test_nothing_is_counted_where_nothing_is_known():
    mi300x = gpu("mi300x")
    assert not instruction_fetches(mi300x, dataclasses.replace(RESOURCES, code_bytes=0), 8).any()
    assert not instruction_fetches(dataclasses.replace(mi300x, l1i=None), RESOURCES, 8).any()
    assert not instruction_fetches(gpu("h200"), RESOURCES, 8).any()


@pytest.mark.parametrize("replay", ["lockstep", "timed"])
def test_a_small_launch_owes_hits_to_its_code(replay):
    kernel = fused_elementwise(n_elements=1 << 16)
    scorer = Scorer(kernel, gpu("mi300x"), replay=replay)
    traffic = scorer.traffic(np.arange(64))
    code, data = scorer.fetches.sum(axis=0), traffic.by_tensor[:-1].sum(axis=(0, 1))
    assert traffic.tensors[-1] == CODE
    assert traffic.total(READ_REQUESTS) == data[READ_REQUESTS] + code[READ_REQUESTS]
    assert code[READ_REQUESTS] == 64 * (9 + 8)  # 568 B are 9 lines, 8 more are prefetched, by a cache a workgroup
    assert code[READ_MISSES] == 8 * 9
    assert 0.2 < traffic.l2_hit_rate <= scorer.bound.l2_hit_rate
    assert scorer.bound.l2_hit_rate == scorer.assigned_bound(np.arange(64))
