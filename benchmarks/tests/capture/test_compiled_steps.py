"""Is a step of a kernel that Triton compiles for an H200 timed by its code, and replayed so?"""

import dataclasses

import pytest

from swizzle_benchmarks.validation.rows import DATA
from swizzle_sim.capture.occupancy import compile_launch, compiled_for
from swizzle_sim.capture.user_kernel import load
from swizzle_sim.pricing.access_patterns import fitted_constants
from swizzle_sim.pricing.issuing import issue_model_of
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.workload.kernels import kernel
from tests.capture.same_trace import needs_triton
from xcd_model import gpu


@needs_triton
def test_the_compute_of_a_pipelined_step_is_no_less_than_its_code(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    device = gpu("h200")
    work = compiled_for(kernel("gemm", M=512, N=512, K=512, BLOCK_M=128, BLOCK_N=128), device)
    found = work.resources
    assert found.loads_per_step == 2 and found.burst_loads == 0 and found.step_cycles > 100

    def compute_fs(cycles):
        one = dataclasses.replace(work, resources=dataclasses.replace(found, step_cycles=cycles))
        return Scorer(one, device).issue_model.compute_fs

    assert found.step_cycles >= 8 * 48 + 256  # operands of its products, and a step's copies
    assert compute_fs(found.step_cycles) > compute_fs(0) == compute_fs(400)  # which its products alone do not take
    assert compute_fs(9000) == round(9000 / 2 / device.sustained_clock_mhz * 1e9) > compute_fs(0)
    assert compile_launch(kernel("gemm", M=512, N=512, K=512).launch, "gfx942").step_cycles == 0


@needs_triton
def test_what_a_steps_next_loads_wait_for_is_code_once(monkeypatch, tmp_path):
    """Of a loop that waits for its products: what no workgroup computes at the same time goes before the loads."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    device = gpu("h200")
    sizes = {"HELD": 1, "STEPS": 16, "BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 128, "SCALES": 2}
    declared = DATA.parents[1] / "lab" / "product_steps_declared.py"
    work = compiled_for(load(f"{declared}:fp8_4", sizes, device.arch), device)
    found = work.resources
    assert found.after_products and 300 < found.ahead_cycles < 600
    on, cycle_fs = Scorer(work, device), 1e9 / device.sustained_clock_mhz

    def issue(workgroups=1, **changed):
        one = dataclasses.replace(work, resources=dataclasses.replace(found, **changed), programs=132 * workgroups)
        got = issue_model_of(one, device, on.sent, workgroups)
        return got.step * got.compute_fs / cycle_fs, got.step_fs / cycle_fs

    def near(*cycles):
        return pytest.approx(cycles, abs=1)

    assert issue(ahead_cycles=3000, step_cycles=2000) == near(2000, 1000)
    assert issue(ahead_cycles=2800, step_cycles=3000) == near(2800, 0)  # the rest runs while loads are on their way
    latency = (device.l2.latency_ns + device.limits.copy_ns) * device.sustained_clock_mhz / 1e3
    assert issue(ahead_cycles=1000, step_cycles=3000) == near(3000 - latency, 0)  # of which no more does
    _, before = issue(4, ahead_cycles=3000, step_cycles=3000)
    assert issue(4, ahead_cycles=2800, step_cycles=3000) == near(3000, before)  # the others want the units meanwhile
    assert issue(ahead_cycles=0, step_cycles=3000) == near(3000, found.step_instructions * found.threads / 128)
    gemm = compile_launch(kernel("gemm", M=512, N=512, K=512, BLOCK_M=128, BLOCK_N=128).launch, "sm_90a")
    assert not gemm.after_products and gemm.ahead_cycles == 0


@needs_triton
def test_a_gathers_loop_is_timed_by_turns_of_the_assembler(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    found = compile_launch(kernel("spmv").launch, "sm_90a")
    assert found.loads_per_step == 3 and found.burst_loads > 3 and found.burst_loads % 2 == 0


@needs_triton
def test_a_loop_that_is_not_pipelined_is_timed_and_replayed_by_its_code(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    device = gpu("h200")
    work = kernel("attention", H=2, S=1024)
    timed = compiled_for(work, device)
    found = timed.resources
    assert found.burst_loads in (1, 2) and found.loads_per_step == 0
    assert 0 < found.busy_cycles < found.burst_cycles
    scorer = Scorer(timed, device)
    issue = scorer.issue_model
    assert (issue.in_flight, issue.step, issue.after_products) == (found.burst_loads, found.burst_loads, True)
    assert issue.compute_fs == round(found.busy_cycles / found.burst_loads / device.sustained_clock_mhz * 1e9)
    assert issue == issue_model_of(timed, device, scorer.sent, scorer.occupancy, seed=scorer.seed)
    softmax = {"SOFTMAX_OPS", "ROW_OPS", "SUM_OPS"}
    assert softmax <= set(fitted_constants(device, work, "timed", 2))
    assert not softmax & set(fitted_constants(device, timed, "timed", 2))
    assert compile_launch(work.launch, "gfx942").burst_loads == 0  # AMD's code was not timed
