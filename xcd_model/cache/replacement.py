"""The replacement policy of the L2s and the Infinity Cache, chosen here and nowhere else.

A policy is a module with two names, as `xcd_model.cache.lru`:

    POLICY                                          its name; fast/ has vector rows for "lru" alone
    _touch(words, filler, row, ways, word, by)      a look-up that fills on a miss: HIT, PARTLY, or the victim's word

``filler`` is None, or has the instruction that filled each line: numba compiles a function for each of the two.

To replay another one, import it here: see docs/contributing.md. It must not look at tags but to compare them:
`xcd_model.fast.symmetry` renames lines. Stack distances (`xcd_model.analysis`) are those of LRU, whatever is chosen
here; the L1 is LRU (`xcd_model.replay.through_l1`). The L2 of an MI355X is known not to be LRU (docs/model.md); which
policy it has is not.
"""

from __future__ import annotations

from xcd_model.cache.lru import POLICY, _touch

__all__ = ["POLICY", "_touch"]
