"""Does a description upon another take what it should, and say how it knows it?"""

import re

import pytest

from swizzle_sim.language import Swizzle
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.workload.kernels import kernel
from xcd_model import gpu, gpu_modes, gpu_names
from xcd_model.errors import SpecError, UnknownName
from xcd_model.spec.facts import Fact
from xcd_model.spec.load import base_of


def test_a_description_on_a_base_states_only_what_differs(tmp_path):
    (tmp_path / "mine.toml").write_text(
        'base = "mi300x"\nxcds = 4\n[l2]\nsize_bytes = 8388608\n[energy]\nstatic_w = 3\n'
    )
    mine, base = gpu(str(tmp_path / "mine.toml")), gpu("mi300x")
    assert (mine.name, mine.xcds, mine.l2.size_bytes) == ("mine", 4, 8388608)
    assert mine.l2.ways == base.l2.ways and mine.hbm == base.hbm and mine.energy.static_w.high == 3
    assert mine.facts["l2.size_bytes"] == Fact(
        value=8388608, status="assumed", source="mine.toml, in place of the mi300x's 4194304"
    )
    own = 'cus_per_xcd = { value = 20, status = "documented", source = "a book" }'
    (tmp_path / "yours.toml").write_text(f'base = "mine.toml"\nname = "ours"\n{own}\n')
    yours = gpu(str(tmp_path / "yours.toml"))
    assert (yours.name, yours.xcds, yours.cus_per_xcd, yours.facts["cus_per_xcd"].source) == ("ours", 4, 20, "a book")
    assert gpu_modes(str(tmp_path / "mine.toml")) == (("SPX", "NPS1"),)  # the modes divide eight XCDs


def test_what_is_known_of_a_base_is_assumed_of_another_chip(tmp_path):
    text = 'base = "h200"\nother_chip = true\nwithout = ["l2_partitions", "hbm.turnaround_ns"]\narch = "{}"\n'
    for arch in ("sm_90a", "sm_100a"):
        (tmp_path / f"{arch}.toml").write_text(text.format(arch))
    base, same, newer = gpu("h200"), *(gpu(str(tmp_path / f"{arch}.toml")) for arch in ("sm_90a", "sm_100a"))
    assert {fact.status for fact in newer.facts.values()} == {"assumed"}
    assert {fact.status for fact in same.facts.values()} == {"assumed", "documented"}
    gone = {key for key in base.facts if key.startswith("l2_partitions.")} | {"hbm.turnaround_ns"}
    for key, fact in base.facts.items():
        if key in gone:
            assert key not in same.facts
            continue
        assert (same.facts[key].value, same.facts[key].fitted_to) == (fact.value, ())
        kept = fact.status in ("assumed", "documented")
        said = fact.source if kept else f"taken from the NVIDIA H200, where it is {fact.status}: {fact.source}"
        assert same.facts[key].source == said
        assert newer.facts[key].source.endswith(fact.source)
    assert same.l2_partitions is None and same.hbm.turnaround_ns is None and same.l2 == base.l2


@pytest.mark.parametrize("name", gpu_names())
def test_each_description_scores_a_small_kernel(name):
    """Nothing is measured on a GPU that lies upon another but what its own file says; every one replays."""
    work = kernel("gemm", M=512, N=512, K=128, BLOCK_M=64, BLOCK_N=64)
    for replay in ("lockstep", "timed"):
        scorer = Scorer(work, gpu(name), replay=replay)
        found = scorer.score(Swizzle.parse("identity"))
        assert 0 < found.l2_hit_rate < 1 and found.time_us > 0
    if base_of(name):
        taken = [fact for fact in gpu(name).facts.values() if fact.source.startswith("taken from the ")]
        assert len(taken) > 15 and {fact.status for fact in taken} == {"assumed"}


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        ('base = "mi300y"', UnknownName, "did you mean mi300x"),
        ('base = "gone.toml"', SpecError, "base = 'gone.toml' cannot be read"),
        ('base = "me.toml"', SpecError, "perhaps in a circle"),
        ("base = 3", SpecError, "must be the name of a GPU"),
        ('base = "mi300x"\nl2 = 3', SpecError, "must be a table"),
        ('base = "mi300x"\nxcds = "four"', SpecError, "must be a whole number"),
        ('base = "mi300x"\n[l2]\nsizebytes = 3', SpecError, "l2.sizebytes is not a known key"),
        ('base = "mi300x"\nwithout = ["l2_partitions"]', SpecError, "the mi300x has no l2_partitions"),
        ('base = "mi300x"\nwithout = ["l2.ways.value"]', SpecError, "the mi300x has no l2.ways.value"),
        ('base = "mi300x"\nwithout = "mall"', SpecError, "must be a list of keys"),
        ('base = "mi300x"\nother_chip = 1', SpecError, "must be true or false"),
    ],
)
def test_a_base_that_cannot_be_is_refused(tmp_path, text, error, said):
    (tmp_path / "me.toml").write_text(text)
    with pytest.raises(error, match=re.escape(said)):
        gpu(str(tmp_path / "me.toml"))
