"""How hard the attacks press: a short fixed-seed form by default, ``SWIZZLE_SIM_ATTACKS=N`` for N times as many."""

import json
import os

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

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


def places(document, at=()):
    """Every place in a JSON document, by its keys."""
    inside = (
        document.items() if isinstance(document, dict) else enumerate(document if isinstance(document, list) else ())
    )
    for key, value in inside:
        yield (*at, key)
        yield from places(value, (*at, key))


def changed(document, data, values):
    """A JSON document with one value exchanged for one of ``values``, or left out."""
    document = json.loads(json.dumps(document))
    at = data.draw(st.sampled_from(list(places(document))))
    holder = document
    for key in at[:-1]:
        holder = holder[key]
    if data.draw(st.booleans()):
        holder[at[-1]] = data.draw(values)
    else:
        del holder[at[-1]]
    return document
