"""Does a remap that is lost fall below a floor?"""

from pathlib import Path

import pytest

from swizzle_sim.testing import HitRateError, assert_hit_rate
from xcd_model.errors import NotBijective, OptionError, SwizzleSimError

REMAP = """
import triton
import triton.language as tl

@triton.jit
def place(pid, num_pids, NUM_XCDS: tl.constexpr = 8):
    xcd = pid % NUM_XCDS
    return xcd * (num_pids // NUM_XCDS) + min(xcd, num_pids % NUM_XCDS) + pid // NUM_XCDS
"""
KERNEL = """
import triton
import triton.language as tl
from remap import place
from swizzle_sim.capture import Array, Kernel

@triton.jit
def rows(a_ptr, c_ptr, N, BLOCK: tl.constexpr):
    pid = place(tl.program_id(0), tl.num_programs(0))
    at = pid // 32 * BLOCK + tl.arange(0, BLOCK)  # 32 workgroups read the same row
    tl.store(c_ptr + pid * BLOCK + tl.arange(0, BLOCK), tl.load(a_ptr + at))

kernel = Kernel(
    rows,
    sizes={"N": 512, "BLOCK": 1024},
    arguments=lambda s: {
        "a_ptr": Array(shape=(s.N // 32, s.BLOCK), dtype="fp32"),
        "c_ptr": Array(shape=(s.N, s.BLOCK), dtype="fp32", role="out"),
        "N": s.N,
    },
    constexprs=lambda s: {"BLOCK": s.BLOCK},
    grid=lambda s: (s.N,),
)
"""
SMALL = {"M": 1024, "N": 1024, "K": 256}


def test_a_floor_that_is_reached():
    assert_hit_rate("gemm", at_least=0.0, **SMALL)
    assert_hit_rate("gemm", "contiguous", "mi300x", at_least=0.1, **SMALL)
    assert_hit_rate("gemm", "pid = num_pids - 1 - pid", at_least=0.1, **SMALL)


def test_a_floor_that_is_missed_says_what_there_is():
    with pytest.raises(HitRateError) as failed:
        assert_hit_rate("gemm", "contiguous", at_least=0.99, **SMALL)
    error = failed.value
    lines = str(error).splitlines()
    assert lines[0].startswith("gemm M=1024 N=1024 K=256")
    assert f"under contiguous: L2 hit rate {100 * error.l2_hit_rate:.2f} %, below 99.00 %" in lines[0]
    assert lines[1] == f"  launch order: {100 * error.launch_order:.2f} %"
    assert lines[2].endswith(f"{100 * error.best:.2f} %, {error.family}")
    assert lines[3].endswith("so no order reaches the floor")
    assert lines[4] == "  simulated, lockstep replay"
    assert error.best >= max(error.l2_hit_rate, error.launch_order)
    assert isinstance(error, AssertionError)
    assert_hit_rate("gemm", error.family, at_least=error.best, **SMALL)


def test_misuse_of_a_floor():
    with pytest.raises(OptionError, match="between 0 and 1"):
        assert_hit_rate("gemm", at_least=93.6)
    with pytest.raises(OptionError, match="Python function"):
        assert_hit_rate("gemm", lambda pid: pid, at_least=0.5, **SMALL)
    with pytest.raises(NotBijective):
        assert_hit_rate("gemm", "pid = pid // 2", at_least=0.5, **SMALL)
    with pytest.raises(SwizzleSimError, match="gemn"):
        assert_hit_rate("gemn", at_least=0.5)


def test_a_remap_that_is_lost_in_a_helper_is_noticed(tmp_path, monkeypatch):
    pytest.importorskip("triton")
    monkeypatch.chdir(tmp_path)
    Path("rows.py").write_text(KERNEL)
    Path("remap.py").write_text(REMAP)
    assert_hit_rate("rows.py", at_least=0.65, replay="lockstep")
    Path("remap.py").write_text(REMAP.replace("return xcd *", "return pid\n    return xcd *"))
    with pytest.raises(HitRateError):
        assert_hit_rate("rows.py", at_least=0.65, replay="lockstep")
