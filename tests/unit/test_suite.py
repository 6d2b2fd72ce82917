"""Are the candidates of the suite's kernels all there and varied at the front, and their facts kept?"""

import pytest

from swizzle_sim.base import disk_cache
from swizzle_sim.search import facts as facts_module
from swizzle_sim.search.candidates import family_specs, shortlist
from swizzle_sim.search.facts import facts_of
from swizzle_sim.workload.kernels import kernel
from xcd_model import gpu

MI300X = gpu("mi300x")
KERNELS = (
    ("softmax", {"M": 64, "N": 256}),
    ("gemm", {"M": 1024, "N": 1024, "K": 128}),
    ("fdtd_2d", {"Nx": 256, "Ny": 256}),
)


def test_the_shortlist_is_every_family_once_and_varied_at_the_front():
    for name, sizes in KERNELS:
        work = kernel(name, **sizes)
        listed = [candidate.name for candidate in shortlist(work, MI300X)]
        assert sorted(listed) == sorted(set(family_specs(work, MI300X)))
        kinds = [spec.split("(")[0] for spec in listed]
        front = len(set(kinds)) if len(listed) < 10 else 8
        assert len(set(kinds[:front])) >= min(front, 6)
    first = [candidate.name for candidate in shortlist(kernel("gemm"), MI300X)]
    assert first.index("contiguous+group_m(size=8)") < first.index("contiguous+group_m(size=32)")


def test_facts_are_kept_and_forgotten_with_the_source(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    work = kernel("gemm", M=512, N=512, K=64)
    first = facts_of(work, MI300X)
    monkeypatch.setattr(facts_module, "work_out", lambda scorer: pytest.fail("worked out again"))
    assert facts_of(kernel("gemm", M=512, N=512, K=64), MI300X) == first
    monkeypatch.setattr(disk_cache, "_digest_once", lambda folder: "other")
    with pytest.raises(pytest.fail.Exception):
        facts_of(work, MI300X)
