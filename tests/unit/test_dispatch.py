"""Do workgroups go to the XCD they should, and as many to a CU as fit?"""

from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit, typeof

from tests import naive
from tests.machines import small_gpu
from xcd_model import Resources, TraceBuilder, gpu, loads_in_flight, workgroups_per_cu, xcd_of
from xcd_model.cache.packed import machine_of
from xcd_model.dispatch import _next_instruction, seats_of, slots_in_step, slots_of
from xcd_model.errors import ReplayError
from xcd_model.replay.events import CUS, NEVER, SLOT_BITS, _settle, event_queue_of
from xcd_model.replay.plan import check_order
from xcd_model.spec.gpu import DISPATCHES
from xcd_model.trace.claims import Claims


@given(
    n=st.integers(0, 60),
    xcds=st.integers(1, 9),
    offset=st.integers(0, 8),
    dispatch=st.sampled_from(DISPATCHES),
    chunk=st.none() | st.integers(1, 9),
)
def test_an_xcd_gets_its_runs_of_ids(n, xcds, offset, dispatch, chunk):
    machine = small_gpu(xcds=xcds, offset=offset % xcds, dispatch=dispatch, chunk=chunk)
    xcd = xcd_of(n, machine)
    for x, mine in enumerate(naive.queues(n, machine)):
        assert np.flatnonzero(xcd == x).tolist() == mine
    assert dispatch != "round_robin" or np.ptp(np.bincount(xcd, minlength=xcds)) <= 1


def resources(**change):
    return Resources(
        **({"threads": 512, "vgprs": 128, "lds_bytes": 0, "instructions_in_flight": 4, "source": "x"} | change)
    )


# by hand, on a CU of 4 SIMDs, 8 waves and 512 registers a SIMD, 64 KiB of LDS, 32 workgroups, 16 with a barrier
@pytest.mark.parametrize(
    ("change", "fit"),
    [
        ({}, 2),  # 8 waves of 128 registers: 4 waves a SIMD, 16 a CU
        ({"lds_bytes": 32 * 1024}, 2),
        ({"lds_bytes": 32 * 1024 + 1}, 1),
        ({"vgprs": 256, "lds_bytes": 64 * 1024}, 1),
        ({"vgprs": 129}, 1),  # rounded up to 136: 3 waves a SIMD, 12 a CU
        ({"vgprs": 1}, 4),  # 32 waves
        ({"threads": 64, "vgprs": 1}, 32),
        ({"threads": 65, "vgprs": 1}, 16),
        ({"threads": 128, "vgprs": 1}, 16),  # 16 barriers
        ({"threads": 1024, "vgprs": 64}, 2),
        ({"threads": 1, "vgprs": 512}, 4),
        ({"vgprs": 0, "threads": 256}, 8),
    ],
)
def test_occupancy_by_hand(change, fit):
    assert workgroups_per_cu(resources(**change), gpu("mi300x")) == fit


# a workgroup reads tiles of 32 x 128 fp32, 16 KiB each, and may write one: 128 threads of 32 registers
@pytest.mark.parametrize(
    ("change", "writes", "loads"),
    [
        ({"vgprs": 160, "instructions_in_flight": 5}, False, 5),
        ({"vgprs": 96, "instructions_in_flight": 5}, False, 3),
        ({"vgprs": 95, "instructions_in_flight": 5}, False, 2),
        ({"vgprs": 96, "instructions_in_flight": 5}, True, 2),  # what it will write is held meanwhile
        ({"vgprs": 96, "instructions_in_flight": 5, "lds_bytes": 32 * 1024}, True, 4),
        ({"vgprs": 1, "instructions_in_flight": 5}, True, 1),
        ({"vgprs": 512, "instructions_in_flight": 2}, True, 2),
    ],
)
def test_loads_need_registers_to_land_in(change, writes, loads):
    build = TraceBuilder(n_workgroups=2, line_bytes=128)
    x, y = (build.array(name, rows=64, cols=128, item_bytes=4) for name in "xy")
    tile = {"row": np.array([0, 32]), "col": 0, "rows": 32, "cols": 128}
    build.step(build.read(x, **tile), *([build.write(y, **tile)] if writes else []))
    assert loads_in_flight(resources(threads=128, **change), build.trace()) == loads


def test_a_kernel_that_only_writes_is_not_bounded():
    build = TraceBuilder(n_workgroups=1, line_bytes=128)
    build.step(build.write(build.array("x", rows=1, cols=64, item_bytes=4), row=0, col=0, rows=1, cols=64))
    assert loads_in_flight(resources(instructions_in_flight=7, vgprs=1), build.trace()) == 7


@pytest.mark.parametrize(
    ("change", "short"),
    [
        ({"lds_bytes": 65537}, r"LDS \(65537 of 65536 B\)"),
        ({"threads": 1088}, r"threads \(1088 of 1024"),
        ({"vgprs": 520}, "VGPRs"),
        ({"vgprs": 512}, "VGPRs"),  # 8 waves, and only 4 fit
    ],
)
def test_what_does_not_fit_is_named(change, short):
    with pytest.raises(ReplayError, match=short):
        workgroups_per_cu(resources(**change), gpu("mi300x"))


@pytest.mark.parametrize("dtype", [np.uint8, np.uint64, np.int32])
def test_check_order_returns_contiguous_int64(dtype):
    order = check_order(np.arange(8, dtype=dtype)[::-1], 8)
    assert order.dtype == np.int64
    assert order.flags.c_contiguous
    assert order.tolist() == [7, 6, 5, 4, 3, 2, 1, 0]


@pytest.mark.parametrize(
    ("order", "says"),
    [
        ([0, 1], r"order has shape \(2,\) and type int64"),
        ([0.0, 1.0, 2.0], r"order has shape \(3,\) and type float64"),
        ([[0, 1, 2]], r"\(1, 3\)"),
        ([-1, 0, 1], r"order holds -1\.\.1; workgroups are 0\.\.2"),
        ([1, 2, 3], r"order holds 1\.\.3; workgroups are 0\.\.2"),
        ([0, 2, 2], "computes workgroup 2 twice and workgroup 1 not at all"),
    ],
)
def test_what_is_no_order_is_refused_by_what_it_is(order, says):
    with pytest.raises(ReplayError, match=says):
        check_order(np.array(order), 3)


class Launch(NamedTuple):
    """What dispatch reads of a machine."""

    xcds: int
    slots: int
    offset: int
    programs: int
    pools: int = 0
    local: int = 0
    steals: bool = False
    cus: int = 1
    cluster: int = 1
    run: int = 1


@njit(cache=True)
def next_instruction(start, machine, order, slots, xcd, slot):
    return _next_instruction(start, machine, order, slots, xcd, slot)


@settings(max_examples=100)
@given(
    lengths=st.lists(st.integers(0, 3), min_size=1, max_size=14),
    machine=st.builds(
        Launch,
        xcds=st.integers(1, 4),
        slots=st.integers(1, 3),
        offset=st.integers(0, 3),
        programs=st.integers(0, 6),
        pools=st.integers(0, 4),
        local=st.integers(0, 14),
        steals=st.booleans(),
        cus=st.just(1),
        cluster=st.just(1),
        run=st.integers(1, 5),
    ),
    seed=st.integers(0, 2**16),
)
def test_a_slot_issues_what_the_queues_hold(lengths, machine, seed):
    """Slots ask in a random order; an oracle of lists says which instruction each gets, to the last."""
    n, draw = len(lengths), np.random.default_rng(seed)
    machine = machine._replace(programs=min(machine.programs, n), offset=machine.offset % machine.xcds)
    machine = machine._replace(pools=machine.pools * bool(machine.programs), local=min(machine.local, n))
    pools = [list(range(k, machine.local, machine.pools)) for k in range(machine.pools)]
    shared = list(range(machine.local, n))
    order = draw.permutation(n)
    start = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    like = small_gpu(xcds=machine.xcds, offset=machine.offset, dispatch="chunked", chunk=machine.run)
    queues = naive.queues(machine.programs or n, like)
    slots, last, left, program = slots_of(machine), {}, {}, {}
    assert slots.running.shape == (machine.xcds, machine.slots, 2) and not slots.running.any()
    assert (slots.pid == -1).all() and (slots.program == -1).all() and slots.counters.size == machine.pools + 1
    assert slots.multicast.size == 0
    assert slots_of(machine, np.ones(3, bool)).multicast.tolist() == [True] * 3  # of a launch in clusters
    for _ in range(3 * int(start[-1]) + 40):
        at = int(draw.integers(machine.xcds)), int(draw.integers(machine.slots))
        while not left.get(at):
            pid = last.get(at, -1)
            mine = []
            if machine.pools and at in program:
                own = program[at] % machine.pools
                mine = [pools[own], *(pools[own + 1 :] + pools[:own] if machine.steals else []), shared]
            if any(mine):
                pid = next(pool for pool in mine if pool).pop(0)
            elif machine.programs and not machine.pools and 0 <= pid < n - machine.programs:
                pid += machine.programs
            elif queues[at[0]]:
                pid = program[at] = queues[at[0]].pop(0)
                if machine.pools:
                    continue
            else:
                break
            last[at], left[at] = pid, list(range(start[order[pid]], start[order[pid] + 1]))
        expected = left[at].pop(0) if left.get(at) else -1
        assert next_instruction(start, machine, order, slots, *at) == expected
        if expected >= 0:
            assert slots.pid[at] == last[at] and slots.running[at][0] == expected + 1


def test_a_cluster_of_two_begins_side_by_side():
    machine = Launch(xcds=2, slots=2, offset=0, programs=0, cus=2, cluster=2)
    order, start = np.arange(8), np.arange(9)  # of one instruction each
    slots = slots_of(machine, np.zeros(8, bool))
    turns = [[next_instruction(start, machine, order, slots, x, s) for x in (0, 1) for s in (0, 1)] for _ in range(3)]
    assert turns == [[0, 1, 2, 3], [4, 5, 6, 7], [-1, -1, -1, -1]]


@settings(max_examples=100)
@given(
    lengths=st.lists(st.integers(0, 3), min_size=1, max_size=14),
    machine=st.builds(Launch, st.integers(1, 4), st.integers(1, 3), st.integers(0, 3), st.integers(1, 6)),
    pools=st.integers(1, 4),
    local=st.integers(0, 14),
    steals=st.booleans(),
    seed=st.integers(0, 2**16),
)
def test_claims_settled_beforehand_are_those_of_all_xcds_in_step(lengths, machine, pools, local, steals, seed):
    n = len(lengths)
    launched = {"programs": min(machine.programs, n), "pools": pools, "local": min(local, n), "steals": steals}
    gpu = small_gpu(xcds=machine.xcds, cus=machine.slots, offset=machine.offset % machine.xcds)
    machine = machine_of(gpu, 0, **launched)  # of its own type: what is compiled here is kept beside the package
    order = np.random.default_rng(seed).permutation(n)
    start = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    slots, claims = slots_in_step(start, machine, order), Claims(pools=pools, local=machine.local, steals=steals)
    turns = [*naive.turns(SimpleNamespace(start=start), order, gpu, 1, machine.programs, claims), []]
    for xcd in reversed(range(machine.xcds)):  # one after the other, and the last first
        for turn in turns:
            asked = [(slot, next_instruction(start, machine, order, slots, xcd, slot)) for slot in range(machine.slots)]
            assert [one for one in asked if one[1] >= 0] == [(slot, i) for x, slot, i in turn if x == xcd]


# ---- Does the event queue of the timed replay give the earliest event, whatever a CU's slots do?
XCDS, CUS_PER_XCD, SLOTS = 2, 3, 2
N_CUS = XCDS * CUS_PER_XCD


@njit(cache=True)
def settle(events, unit):
    _settle(events, unit)


def first_of(events) -> tuple[int, int]:
    return int(events.time[1]), int(events.rank[1])


def test_every_slot_is_in_its_row_and_at_time_0():
    events = event_queue_of(seats_of(XCDS, CUS_PER_XCD, SLOTS))
    for slot in range(N_CUS * SLOTS):
        xcd, place = slot % XCDS, slot // XCDS
        unit, i = xcd * CUS_PER_XCD + place % CUS_PER_XCD, place // CUS_PER_XCD
        assert events.slot_rank[unit, i] == (1 << SLOT_BITS) + slot
    assert not events.slot_time.any()
    assert (events.computes == NEVER).all()
    assert first_of(events) == (0, 1 << SLOT_BITS)


@settings(max_examples=300)
@given(
    st.lists(
        st.tuples(
            st.integers(0, N_CUS - 1), st.integers(0, SLOTS), st.sampled_from([0, 1, 2, 3, NEVER]), st.integers(0, 3)
        ),
        max_size=60,
    )
)
def test_the_first_event_is_the_earliest_then_a_cus_then_the_oldest_then_the_lowest(steps):
    events = event_queue_of(seats_of(XCDS, CUS_PER_XCD, SLOTS))
    for unit, i, time, age in steps:
        if i == SLOTS:
            events.computes[unit] = time
        else:
            events.slot_time[unit, i] = time
            events.slot_rank[unit, i] = ((age + 1) << SLOT_BITS) | int(events.slot_rank[unit, i]) % 2**SLOT_BITS
        settle(events, unit)
        first = np.minimum(events.slot_time.min(axis=1), events.computes)
        assert events.time[CUS : CUS + N_CUS].tolist() == first.tolist()
        every = [
            *zip(events.slot_time.ravel().tolist(), events.slot_rank.ravel().tolist(), strict=True),
            *zip(events.computes.tolist(), range(N_CUS), strict=True),
        ]
        assert first_of(events)[0] == min(every)[0]
        assert first_of(events) == min(every) or min(every)[0] == NEVER


def test_the_last_cu_can_be_first():
    events = event_queue_of(seats_of(1, CUS, 1))
    assert not events.time[1:].any()
    for unit in range(CUS):
        events.slot_time[unit] = CUS - unit
        settle(events, unit)
    assert first_of(events) == (1, (1 << SLOT_BITS) + CUS - 1)


def test_more_cus_than_it_has_places_for_are_refused():
    with pytest.raises(ReplayError, match="2 XCDs of 2049 CUs are 4098 CUs: the timed replay takes at most 4096"):
        event_queue_of(seats_of(2, 2049, 1))
    assert np.all(event_queue_of(seats_of(2, 2048, 1)).time[CUS:] == 0)


def test_kernels_are_compiled_once_for_machines_of_any_shape():
    """Of one XCD, of one slot: numba takes the order in memory for a part of the type."""
    shapes = [(8, 38, 2), (1, 132, 3), (1, 132, 1), (1, 1, 1), (2, 1, 4)]
    kinds = {tuple(str(typeof(one)) for one in event_queue_of(seats_of(*shape))) for shape in shapes}
    assert len(kinds) == 1
