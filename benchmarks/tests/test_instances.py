"""Are drawn instances compared, and a wrong one told from those that need sizes which their blocks divide?"""

import pytest

from swizzle_benchmarks.evidence.search import instances


@pytest.mark.parametrize("name", ["transpose M=128 N=128", "gemm M=128 N=128 K=64 BLOCK_M=32 BLOCK_N=32 BLOCK_K=32"])
def test_drawn_instances_compute_the_same(name):
    same, exact, wrong, _ = instances.compared(name, 3, 0)
    assert same + len(wrong) == 3 and not wrong and exact <= same


def test_a_wrong_instance_is_counted(monkeypatch):
    whole = instances.instance_text

    def wrong(*words):
        text, notes = whole(*words)
        return text.replace(b"tl.load(", b"1 + tl.load("), notes

    monkeypatch.setattr(instances, "instance_text", wrong)
    monkeypatch.setattr(instances, "small_pairs", lambda *two: [one for one in pairs(*two) if one[1]])
    same, _, found, _ = instances.compared("transpose M=128 N=128", 1, 0)
    assert same == 0 and "computes otherwise" in found[0]


pairs = instances.small_pairs
