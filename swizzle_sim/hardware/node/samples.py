"""What a list of times or counts comes down to."""

from __future__ import annotations

import statistics
from collections.abc import Sequence


def summary(values: Sequence[float]) -> dict[str, float]:
    """Median and spread: quartiles, extremes, count.

    Parameters
    ----------
    values : sequence of float
        At least one.
    """
    ordered = sorted(values)
    low, _, high = statistics.quantiles(ordered, n=4, method="inclusive") if len(ordered) > 1 else ordered * 3
    return {
        "median": statistics.median(ordered),
        "lower_quartile": low,
        "upper_quartile": high,
        "lowest": ordered[0],
        "highest": ordered[-1],
        "samples": len(ordered),
    }
