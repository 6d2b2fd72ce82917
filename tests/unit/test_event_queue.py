"""Does the event queue of the timed replay give the earliest event, and know where everyone's is?"""

from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from xcd_model.replay.event_queue import CHILDREN, NEVER, WHO_BITS, _drop, _put, event_queue_of

SLOTS, CUS = 9, 4  # three levels of a heap of four children


@njit(cache=True)
def put(events, who, time):
    _put(events, who, time)


@njit(cache=True)
def drop(events, who):
    _drop(events, who)


@settings(max_examples=300)
@given(
    st.lists(
        st.tuples(st.integers(0, SLOTS + CUS - 1), st.integers(0, 4), st.integers(0, 3), st.booleans()), max_size=60
    )
)
def test_the_first_event_is_the_earliest_then_the_oldest_then_the_lowest(steps):
    events = event_queue_of(SLOTS, CUS)
    times = dict.fromkeys(range(SLOTS), 0)
    assert events.age.tolist() == [0] * SLOTS + [-1] * CUS
    for who, time, age, away in steps:
        if who in times and away:
            drop(events, who)
            del times[who]
        else:
            if who not in times and who < SLOTS:
                events.age[who] = age
            put(events, who, time)
            times[who] = time
        size = int(events.size[0])
        assert size == len(times)
        queued = [int(rank) % 2**WHO_BITS for rank in events.rank[:size]]
        assert {who: int(t) for who, t in zip(queued, events.time[:size], strict=True)} == times
        assert [events.place[who] for who in queued] == list(range(size))
        assert (events.time[size : size + CHILDREN] == NEVER).all()
        assert all(events.place[who] == -1 for who in range(SLOTS + CUS) if who not in times)
        key = {who: (times[who], int(events.age[who]), who) for who in times}
        order = [key[who] for who in queued]
        assert not order or order[0] == min(order)
        assert all(order[(at - 1) // CHILDREN] < order[at] for at in range(1, size))
