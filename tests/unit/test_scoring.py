"""Is a score what the replay counted, and is nothing scored that is no bijection?"""

import dataclasses
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import swizzle_sim
import xcd_model
from swizzle_benchmarks.suite.fused_elementwise import fused_elementwise
from swizzle_benchmarks.suite.gemm import gemm
from swizzle_sim.capture.memory import AddressSpace, real_items
from swizzle_sim.hardware.bundle import arguments_of
from swizzle_sim.language import Swizzle, family
from swizzle_sim.pricing.scores import Score
from swizzle_sim.pricing.scoring import Scorer, score, spread
from swizzle_sim.search.advice import limit_of
from swizzle_sim.workload.kernels import kernel
from swizzle_sim.workload.launch import Array, Launch
from tests.machines import small_gpu
from xcd_model import NotBijective, ReplayError, gpu
from xcd_model.replay.traffic import CODE, MALL_HITS, MALL_REQUESTS, READ_MISSES, READ_REQUESTS, instruction_fetches

SMALL = {"M": 2048, "N": 1536, "K": 256}


@pytest.fixture(scope="module")
def scorer():
    return Scorer(gemm(**SMALL), gpu("mi300x"), replay="lockstep")


def test_the_baseline_is_the_identity(scorer):
    assert scorer.score(Swizzle.parse("pid = pid")) == scorer.baseline
    assert scorer.baseline.speedup == 1


@pytest.mark.parametrize("spec", ["contiguous", "group_m(size=3)", "chunked(chunk=2)+hilbert"])
def test_counts_fit_together(scorer, spec):
    found = scorer.score(Swizzle.parse(family(spec)))
    assert found.l2_hits + found.l2_misses == found.l2_requests
    assert found.l2_hit_rate == found.l2_hits / found.l2_requests <= found.bound_l2_hit_rate
    assert found.speedup == pytest.approx(scorer.baseline.time_us / found.time_us)
    assert found.hbm_write_bytes == SMALL["M"] * SMALL["N"] * 2
    assert found.hbm_bytes >= 2 * (SMALL["M"] * SMALL["K"] + SMALL["N"] * SMALL["K"] + SMALL["M"] * SMALL["N"])


def test_a_kernel_builds_its_trace_once_per_line_size_and_its_launch_when_read():
    made = []
    work = dataclasses.replace(gemm(M=256, N=256, K=64), make_launch=lambda: made.append(1))
    assert work.build_trace(128) is work.build_trace(128) is not work.build_trace(64)
    assert not made and work.launch is work.launch and made == [1]
    assert dataclasses.replace(work, make_launch=None).launch is None


@pytest.mark.parametrize("text", ["pid = pid % 7", "pid = 0", "pid = pid + 1", "pid_m = 0\npid_n = pid"])
def test_what_is_no_bijection_has_no_score(scorer, text):
    with pytest.raises(NotBijective):
        scorer.score(Swizzle.parse(text))
    with pytest.raises(NotBijective):
        score(scorer.kernel, Swizzle.parse(text), scorer.gpu)
    with pytest.raises(ReplayError, match="twice"):
        scorer.traffic(np.zeros(scorer.kernel.grid.num_pids, np.int64))


def test_a_bound_that_is_reached_exactly_is_no_error():
    workload = gemm(M=1024, N=1024, K=256, BLOCK_M=128, BLOCK_N=128)
    found = score(workload, Swizzle.parse(family("contiguous+group_m(size=4)")), gpu("mi300x"), replay="lockstep")
    assert found.distance_to_bound == 0


def test_a_score_survives_json_also_without_infinity_cache(scorer):
    bare = dataclasses.replace(gpu("mi300x"), mall=None)
    for found in (scorer.baseline, Scorer(gemm(M=256, N=256, K=64), bare, replay="lockstep").baseline):
        back = Score.from_dict(json.loads(json.dumps(found.as_dict(), allow_nan=False)))
        assert repr(back) == repr(found)  # nan differs from itself, its text does not
    stored = found.as_dict()
    assert stored["balance"]["makespan_over_ideal"] == found.balance.over_ideal
    assert Score.from_dict({**stored, "balance": None}).balance is None  # as those of old runs


def test_ragged_tiles_take_the_time_of_whole_ones():
    whole, ragged = (
        Scorer(gemm(M=m, N=m, K=4096), gpu("mi300x"), replay="lockstep").baseline.time_us for m in (512, 257)
    )
    assert ragged == pytest.approx(whole, rel=0.02)


def test_the_public_names_of_the_machine_are_pinned():
    assert sorted(xcd_model.__all__) == [
        *("Bound", "Cache", "Claims", "Clusters", "Deadlock", "Energy", "Gpu", "IssueModel", "LanguageError", "Memory"),
        *("NotBijective", "Plan"),
        *("ReplayError", "Resources", "RunError", "SizeError", "SpecError", "SwizzleSimError", "Tensor", "Time"),
        "TornCluster",
        *("Trace", "TraceBuilder", "TraceError", "Traffic", "UnknownName", "Waits", "assigned_misses", "compute_fs"),
        "energy",
        *("gpu", "gpu_modes", "gpu_names", "hit_rate_bound", "limited_by_power", "load_gpu", "loads_in_flight"),
        *("prepare", "replay_lockstep", "replay_lru", "replay_timed", "roofline", "timed_time", "workgroups_per_cu"),
        "xcd_of",
    ]
    for name in xcd_model.__all__:
        assert getattr(xcd_model, name).__doc__


def test_the_public_names_are_pinned():
    assert swizzle_sim.__all__ == [
        *("Attempt", "Gpu", "Grid", "History", "Kernel", "NotBijective", "Picture", "Run", "Score", "Scorer"),
        *("Swizzle", "SwizzleSimError", "Verdict", "describe", "emit_hip", "emit_triton", "family", "gpu", "gpu_names"),
        *("kernel", "kernel_names", "optimize", "record", "score", "show_map", "verify", "version", "what_if"),
    ]
    assert sorted(dir(swizzle_sim)) == sorted(swizzle_sim.__all__)
    for name in swizzle_sim.__all__:
        assert getattr(swizzle_sim, name).__doc__
    with pytest.raises(AttributeError):
        _ = swizzle_sim.nothing


def test_in_lockstep_rows_of_the_memory_take_no_part_and_sets_of_one_class_are_replayed_once():
    """The H200's rows cost time alone, and would have every set replayed; half of the sets differ in homes."""
    kernel = gemm(M=1024, N=1024, K=512, BLOCK_M=128, BLOCK_N=128)
    lockstep, timed = (Scorer(kernel, gpu("h200"), replay=replay) for replay in ("lockstep", "timed"))
    assert lockstep.plan.simulated_fraction == 0.5 and timed.plan.simulated_fraction == 1
    order = lockstep.permutation(Swizzle.parse(family("contiguous+group_m(size=4)")))
    assert lockstep.traffic(order).per_xcd.tolist() == timed.quick.traffic(order).per_xcd.tolist()


def test_a_spread_needs_the_timed_replay_and_something_that_varies(scorer):
    swizzle = Swizzle.parse(family("group_m(size=2)"))
    alike = dataclasses.replace(scorer.gpu, compute_spread=0.0)
    for refused in (scorer, Scorer(scorer.kernel, alike, replay="timed")):
        with pytest.raises(ReplayError, match=r"every seed gives the same counts .*: use --replay timed"):
            spread(refused, swizzle, 3)
    assert scorer.gpu.compute_spread
    drifting = spread(Scorer(scorer.kernel, scorer.gpu, replay="timed"), swizzle, 3)
    assert drifting.time_us_std > 0


def test_a_spread_with_jitter_depends_on_the_seeds_alone(scorer):
    swizzle = Swizzle.parse(family("group_m(size=2)"))
    with pytest.raises(ReplayError, match="no jitter"):
        Scorer(scorer.kernel, scorer.gpu, jitter_ns=1.0, replay="lockstep")
    shaken = Scorer(scorer.kernel, scorer.gpu, replay="timed", jitter_ns=5000.0)
    with pytest.raises(ReplayError, match="at least 2"):
        spread(shaken, swizzle, 1)
    found = spread(shaken, swizzle, 4)
    assert found == spread(shaken, swizzle, 4)
    assert found.time_us_std > 0


# ---- Fetches of code: counted by hand, added once, and within the bound.
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


def test_vector_arithmetic_of_the_code_is_spread_over_the_instructions_and_named_where_it_limits():
    device, work = gpu("mi300x"), kernel("transpose", M=4096, N=4096)
    busy = dataclasses.replace(work.resources, vector_cycles=100_000, vector_loads=1)
    scorer = Scorer(dataclasses.replace(work, resources=busy), device)
    # a workgroup loads once and stores once
    assert scorer.issue_model.compute_fs == round(100_000 / device.sustained_clock_mhz * 1e9 / 2)
    assert limit_of(scorer, scorer.baseline).startswith("bound by vector arithmetic: ")
    assert "vector" not in limit_of(Scorer(work, device), Scorer(work, device).baseline)


# ---- Are integers that are data drawn, and those that programs count with left at zero?
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
