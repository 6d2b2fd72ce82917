"""Are hypothetical GPUs valid ones, and is the capacity curve what replays of each cache give?"""

import pytest

import swizzle_sim
from swizzle_sim.search.what_if import hypothetical, read_changes, what_if
from xcd_model import xcd_of
from xcd_model.errors import SpecError, UnknownName


def test_changes_are_made_together(mi300x):
    made = swizzle_sim.what_if(mi300x, {"l2.size_bytes": 8 * 2**20, "l2.ways": 32, "xcds": 16})
    assert (made.l2.size_bytes, made.l2.ways, made.xcds, made.cus) == (8 * 2**20, 32, 16, 16 * 38)
    assert made.mall == mi300x.mall and "l2.size_bytes" not in made.facts and "l2.line_bytes" in made.facts
    assert what_if(mi300x, {}) is mi300x


def test_dispatch_is_a_number_of_the_gpu(mi300x):
    chunked = what_if(mi300x, {"dispatch": "chunked"})
    dealt = [xcd_of(608, one).tolist() for one in (chunked, what_if(chunked, {"dispatch_chunk": 2}))]
    assert [xcd[:3] + xcd[38:40] for xcd in dealt] == [[0, 0, 0, 1, 1], [0, 0, 1, 3, 3]]
    assert xcd_of(608, what_if(mi300x, {"dispatch": "one_after_another"})).tolist() == sorted(76 * list(range(8)))
    with pytest.raises(SpecError, match="dispatch = 'tree' is not known; accepted: round_robin, chunked"):
        what_if(mi300x, {"dispatch": "tree"})


def test_words(mi300x):
    assert read_changes(["l2.size_bytes=8MiB, 16MiB", "xcds=4"]) == {"l2.size_bytes": [2**23, 2**24], "xcds": [4]}
    found = [(one["xcds"], gpu.xcds) for one, gpu in hypothetical(mi300x, read_changes(["xcds=4,16"]))]
    assert found == [(4, 4), (16, 16)]
    for word in ("xcds", "=4", "xcds=", "xcds=4,"):
        with pytest.raises(SpecError, match="key=value"):
            read_changes([word])
    with pytest.raises(SpecError, match="twice"):
        read_changes(["xcds=4", "xcds=8"])


@pytest.mark.parametrize(
    ("changes", "error", "told"),
    [
        ({"l2.size": 1}, UnknownName, "did you mean l2.size_bytes"),
        ({"facts": 1}, UnknownName, "facts"),
        ({"xcds": 0}, SpecError, "xcds = 0"),
        ({"l2.size_bytes": 4_000_000}, SpecError, "nearest sizes"),
        ({"clock_mhz": "fast"}, SpecError, "clock_mhz"),
    ],
)
def test_a_gpu_that_cannot_be(mi300x, changes, error, told):
    with pytest.raises(error, match=told):
        what_if(mi300x, changes)
