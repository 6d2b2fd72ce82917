"""Is an order refused exactly where a tile comes before one that it waits for, and does no other hang?"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swizzle_sim.language import Swizzle, family
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.workload.kernels import kernel
from xcd_model import Waits, gpu
from xcd_model.errors import Deadlock
from xcd_model.trace.waits import check_waits, waited_fs


def awaited_by(waits, workgroup):
    """Workgroups that one waits for."""
    group = waits.awaits[workgroup]
    return [] if group < 0 else [other for other in range(waits.sets.size) if waits.sets[other] == group]


def hangs(order, waits, programs, pools, local, draw):
    """Whether programs that claim in turn, and run in any order, come to a point where all of them wait."""
    queues = [list(range(pool, local, pools)) for pool in range(pools)]
    rest, done, holds = list(range(local, len(order))), set(), {}
    while True:
        for program in range(programs):
            queue = queues[program % pools] or rest
            if program not in holds and queue:
                holds[program] = order[queue.pop(0)]
        if not holds:
            return False
        ready = [program for program, tile in holds.items() if set(awaited_by(waits, tile)) <= done]
        if not ready:
            return True
        done.add(holds.pop(draw(st.sampled_from(ready))))


@st.composite
def staged(draw):
    """Workgroups of one or more groups that set flags or wait for a group, no group for itself."""
    n, groups = draw(st.integers(1, 12)), draw(st.integers(1, 3))
    sets = np.array(draw(st.lists(st.integers(-1, groups - 1), min_size=n, max_size=n)))
    awaits = np.array([-1 if one >= 0 else draw(st.integers(-1, groups - 1)) for one in sets])
    return np.array(draw(st.permutations(range(n)))), Waits(sets=sets, awaits=awaits)


@settings(max_examples=200, deadline=None)
@given(case=staged(), data=st.data())
def test_an_order_is_refused_where_a_tile_comes_before_one_it_waits_for_and_no_other_hangs(case, data):
    order, waits = case
    place = {tile: t for t, tile in enumerate(order.tolist())}
    early = [tile for tile in place if any(place[other] > place[tile] for other in awaited_by(waits, tile))]
    if early:
        first = min(early, key=place.get)
        with pytest.raises(Deadlock, match=rf"^id {place[first]} \(tile {first}\) waits for the later id"):
            check_waits(order, waits)
        return
    check_waits(order, waits)
    pools = data.draw(st.integers(1, 4))
    local = data.draw(st.integers(0, order.size))
    programs = data.draw(st.integers(min(pools, local) or 1, order.size))
    assert not hangs(order.tolist(), waits, programs, pools, local, data.draw)


def test_how_long_each_would_have_waited_by_hand():
    """Ids 0 and 1 set the flags of group 0 at 5 and 9; id 2 begins at 4 and waits for 5, id 3 at 9 for none."""
    waits = Waits(sets=np.array([-1, 0, -1, 0]), awaits=np.array([0, -1, 0, -1]))
    order = np.array([1, 3, 0, 2])
    spans = np.array([[0, 5, 0, 0, 0], [2, 9, 0, 0, 0], [4, 12, 0, 0, 0], [9, 11, 0, 0, 0]])
    assert waited_fs(spans, order, waits).tolist() == [0, 0, 5, 0]


def test_a_candidate_that_may_hang_has_no_score_and_the_verdict_says_why():
    scorer = Scorer(kernel("mlp_megakernel", M=1024, K=64, H=1024, N=512), gpu("mi300x"), replay="lockstep")
    refused = scorer.verify(Swizzle.parse(family("snake")))
    assert (refused.bijective, refused.status, refused.counterexample.code) == (False, "refuted", "deadlock")
    with pytest.raises(Deadlock, match="put it after that"):
        scorer.score(Swizzle.parse(family("snake")))
    here = scorer.verify(Swizzle.parse(family("contiguous")))  # an XCD has whole rows of tiles, elsewhere parts
    assert here.bijective and here.domain == "this grid only" and here.lattice_counterexample.code == "deadlock"
    everywhere = scorer.verify(Swizzle.parse(family("column")))
    assert everywhere.bijective and everywhere.domain != "this grid only" and everywhere.passed == everywhere.tested
    assert scorer.verify(Swizzle.parse(family("identity"))).passed > 1
