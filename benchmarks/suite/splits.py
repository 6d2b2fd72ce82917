"""Keys of attention in splits (Flash-Decoding): which keys a split has, its steps over them, and what it makes of them.

Each workgroup of such a kernel has one of SPLITS runs of the S keys, BLOCK_N keys a step.
"""

import numpy as np

from .declared import Sizes, cdiv


def splits(s: Sizes) -> tuple[np.ndarray, np.ndarray]:
    """(SPLITS,) first key of each split, and the key behind its last; equal where the split is empty."""
    first = np.arange(s.SPLITS) * cdiv(s.S, s.SPLITS)
    return np.minimum(first, s.S), np.minimum(first + cdiv(s.S, s.SPLITS), s.S)


def steps_of(s: Sizes, split: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """First key of each step of a workgroup's split, and how many keys: (n_workgroups, steps), 0 behind its end."""
    first, end = (place[split][:, None] for place in s.splits)
    start = first + np.arange(int(s.steps.max()))[None, :] * s.BLOCK_N
    return start, np.clip(end - start, 0, s.BLOCK_N)


def of_splits(s: Sizes, scores: np.ndarray, weighted) -> tuple[np.ndarray, np.ndarray]:
    """Partial outputs and log-sum-exps of scores (B, H, S); zeros and minus infinity for a split without keys.

    ``weighted(weights, keys)`` sums the values of a slice of keys.
    """
    part, lse = [], []
    for first, end in zip(*s.splits, strict=True):
        mine = scores[:, :, first:end]
        most = mine.max(axis=-1, initial=-np.inf)
        weights = np.exp(mine - most[..., None])
        total = np.maximum(weights.sum(axis=-1), 1)  # the largest weight is 1: less is of no keys
        part.append(weighted(weights, slice(first, end)) / total[..., None])
        lse.append(most + np.log(total))
    return np.stack(part, axis=2), np.stack(lse, axis=2)


IN_SPLITS = {
    "splits": splits,
    "steps": lambda s: cdiv(s.splits[1] - s.splits[0], s.BLOCK_N),  # (SPLITS,) trips through the loop over keys
}
