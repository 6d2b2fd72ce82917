"""Settings of the constants that a study replays under: each constant alone at its ends, or all in a hypercube."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.uncertainty.constants import Constant, Setting, constants_of

# Keys, and ends of keys, of rates and latencies: in the lockstep replay they change times and no count.
RATES = (
    *("clock_mhz", "sustained_clock_mhz", "compute_spread", "peak_tflops", "fabric_bytes_per_cycle"),
    *("instructions_in_flight", "limits.reads_in_flight_per_cu", "limits.workgroup_gap_ns", "hbm.turnaround_ns"),
    *(
        "l2_partitions.remote_ns",
        "l2_partitions.reads_as_one",
        "l2_partitions.under_way",
        "limits.matrix_beside_vector",
        "limits.copy_ns",
        "limits.products_before_loads",
        "limits.scalar_cycles",
        "limits.scalar_wait_cycles",
        "energy.power_w",
    ),
)
RATE_ENDS = ("latency_ns", "bytes_per_cycle", "bandwidth_gbps")


def drawn_constants(scorer: Scorer) -> list[Constant]:
    """Constants that a scorer's replay reads and that have a range."""
    found = constants_of(scorer.gpu, scorer.kernel.resources, jitter_ns=scorer.jitter_ns)
    idle = set() if scorer.replay == "timed" else {"jitter_ns"}
    if scorer.kernel.launches == 1:
        idle.add("mall.kept_between_launches")
    if not scorer.kernel.vector_ops or scorer.kernel.resources.burst_loads:
        idle.add("limits.matrix_beside_vector")
    return [constant for constant in found if constant.key not in idle]


def counting_settings(scorer: Scorer, settings: Mapping[str, Setting]) -> dict[str, Setting]:
    """Settings that may change a count: all of them in the timed replay."""
    if scorer.replay == "timed":
        return dict(settings)
    return {key: value for key, value in settings.items() if key not in RATES and not key.endswith(RATE_ENDS)}


def one_at_a_time(constants: Sequence[Constant]) -> Iterator[tuple[str, dict[str, Setting]]]:
    """Each constant alone at each end of its range: (key, settings)."""
    for constant in constants:
        for end in constant.ends():
            yield constant.key, {constant.key: end}


def latin_hypercube_settings(constants: Sequence[Constant], draws: int, seed: int) -> list[dict[str, Setting]]:
    """Settings of all constants together, from a seeded Latin hypercube.

    Parameters
    ----------
    constants : sequence of Constant
    draws : int
    seed : int

    Returns
    -------
    settings : list of dict
        The range of every constant is cut into ``draws`` equal parts, with one draw from each part.

    Source: McKay, Beckman and Conover, Technometrics 21(2), 1979 (Latin hypercube sampling).
    """
    rows = latin_hypercube(draws, len(constants), seed)
    found = [
        {constant.key: constant.at(float(share)) for constant, share in zip(constants, row, strict=True)}
        for row in rows
    ]
    for number, settings in enumerate(found):
        if "jitter_ns" in settings:
            settings["seed"] = seed + 1 + number
    return found


def latin_hypercube(draws: int, dimensions: int, seed: int) -> np.ndarray:
    """(draws, dimensions) float in [0, 1): one point in each of ``draws`` equal parts along every dimension.

    scipy's `qmc.LatinHypercube` draws other points for a seed, so that every published range would move.
    """
    rng = np.random.default_rng(seed)
    parts = (
        np.stack([rng.permutation(draws) for _ in range(dimensions)], axis=1) if dimensions else np.zeros((draws, 0))
    )
    return (parts + rng.random(parts.shape)) / max(1, draws)
