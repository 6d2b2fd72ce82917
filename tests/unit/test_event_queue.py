"""Does the event queue of the timed replay give the earliest event, whatever a CU's slots do?"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit, typeof

from xcd_model import ReplayError
from xcd_model.dispatch import seats_of
from xcd_model.replay.events import CUS, NEVER, SLOT_BITS, _settle, event_queue_of

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
