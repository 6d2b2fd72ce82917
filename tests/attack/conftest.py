"""How hard the attacks press: a short fixed-seed form by default, ``SWIZZLE_SIM_ATTACKS=N`` for N times as many."""

import os

from hypothesis import HealthCheck, settings

TIMES = int(os.environ.get("SWIZZLE_SIM_ATTACKS", "1"))


def attack(examples):
    """Settings of one property: the same examples each time, or ``TIMES`` as many random ones."""
    return settings(
        max_examples=examples * TIMES,
        derandomize=TIMES == 1,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
