"""The draws: each constant alone, and all of them together in a seeded Latin hypercube."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from swizzle_sim.uncertainty.constants import Constant, Setting


def one_at_a_time(constants: Sequence[Constant]) -> Iterator[tuple[str, dict[str, Setting]]]:
    """Each constant at each end of its range, the others in use: (key, settings)."""
    for constant in constants:
        for end in constant.ends():
            yield constant.key, {constant.key: end}


def together(constants: Sequence[Constant], draws: int, seed: int) -> list[dict[str, Setting]]:
    """Draw all constants at once.

    Parameters
    ----------
    constants : sequence of Constant
    draws : int
    seed : int

    Returns
    -------
    settings : list of dict
        The range of every constant is cut into ``draws`` equal parts, and each part is drawn from once.

    Source: McKay, Beckman and Conover, Technometrics 21(2), 1979 (Latin hypercube sampling).
    """
    shares = latin_hypercube(draws, len(constants), seed)
    found = [
        {constant.key: constant.at(float(share)) for constant, share in zip(constants, row, strict=True)}
        for row in shares
    ]
    for number, settings in enumerate(found):
        if "jitter_ns" in settings:
            settings["seed"] = seed + 1 + number
    return found


def latin_hypercube(draws: int, dimensions: int, seed: int) -> np.ndarray:
    """(draws, dimensions) float in [0, 1): one point in each of ``draws`` equal parts along every dimension."""
    rng = np.random.default_rng(seed)
    parts = (
        np.stack([rng.permutation(draws) for _ in range(dimensions)], axis=1) if dimensions else np.zeros((draws, 0))
    )
    return (parts + rng.random(parts.shape)) / max(1, draws)
