"""Latency, turnaround and bursts of copies of an NVIDIA GPU's memory, as medians and lines of stored tables."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from statistics import linear_regression, median


def middles(lines: Iterable[Mapping[str, str]]) -> list[str]:
    """One line of words for each thing that was measured: the median of its repetitions, lowest and highest."""
    found: dict[tuple[str, str, str, str], list[float]] = {}
    for line in lines:
        key = (line["what"], line["bytes"], line["together"], line["unit"])
        found.setdefault(key, []).append(float(line["value"]))
    return [
        f"{what}, {int(size) / 2**20:g} MiB, {together} SMs at one place: "
        f"{median(values):.1f} {unit} ({min(values):.1f} to {max(values):.1f})"
        for (what, size, together, unit), values in found.items()
    ]


SPARE = 0.6  # of the most that a mix of reads and writes reaches: beyond it requests queue up behind each other
LIGHT_BYTES = 16 << 10  # of bursts on an SM at a time


def turnarounds(lines: Iterable[Mapping[str, str]]) -> dict[tuple[int, int, int], float]:
    """How much longer a read takes for each whole that memory is busy, by (loads, stores, piece) [ns].

    Against the least loaded line of the same kind: the median over the heavier half of the loads up to `SPARE` of the
    most that was reached.
    """
    kinds: dict[tuple[int, int, int], list[tuple[float, float]]] = defaultdict(list)
    for line in lines:
        kind = (int(line["loads"]), int(line["stores"]), int(line["piece_bytes"]))
        kinds[kind].append((float(line["gb_per_s"]), float(line["wait_ns"])))
    found = {}
    for kind, points in kinds.items():
        most = max(rate for rate, _ in points)
        (idle_rate, idle_ns), *loaded = sorted(points)
        slopes = [(ns - idle_ns) / (rate - idle_rate) * most for rate, ns in loaded if rate <= SPARE * most]
        found[kind] = median(slopes[len(slopes) // 2 :])  # lighter ones differ by less than noise
    return found


def fills(lines: Iterable[Mapping[str, str]]) -> dict[tuple[str, ...], tuple[float, float]]:
    """Clocks that a burst takes at least, and bytes a clock of an SM that longer ones add, by kind: a straight line.

    Through bursts that leave the L2 half of what it gives out: of longer ones all SMs together take more time.
    A kind is (copies, SMs, workgroups an SM, threads, bursts ahead), in words.
    """
    kinds: dict[tuple[str, ...], list[tuple[float, float]]] = defaultdict(list)
    for line in lines:
        kind = (
            *(line["copies"], f"{line['sms']} SMs", f"{line['workgroups_per_sm']} workgroups an SM"),
            *(f"{line['threads']} threads", f"{line['ahead']} ahead"),
        )
        n_bytes = int(line["burst_bytes"]) * int(line["workgroups_per_sm"])
        if n_bytes <= LIGHT_BYTES:
            kinds[kind].append((float(n_bytes), float(line["clocks"])))
    found = {}
    for kind, points in kinds.items():
        slope, least = linear_regression(*zip(*points, strict=True))
        found[kind] = (least, 1 / slope)
    return found
