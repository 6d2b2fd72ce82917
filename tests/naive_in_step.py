"""Oracle of workgroups in step: sets of tiles, each pair of workgroups by itself."""

from collections import Counter
from fractions import Fraction

from tests.naive_at_once import loads_of, spaced, windows


def share_in_step(trace, order, running, l2_lines):
    shares = []
    for window in windows(trace, order, running):
        n, loads = len(window), [loads_of(trace, one) for one in window]
        waits = len({line for one in loads for _, _, (_, *lines) in one for line in lines}) > l2_lines
        for asked in spaced(8, n - 1) if n > 1 else ():
            if not loads[asked]:
                continue
            most = max(Counter(tensor for _, tensor, _ in loads[asked]).values())
            wanted = {tile for *_, tile in loads[asked]}
            share = sum(
                min(Fraction(1), Fraction(sum(tile in wanted for *_, tile in theirs), most))
                for i, theirs in enumerate(loads)
                if i != asked
            ) / (n - 1)
            shares += [share if waits else Fraction(0)] * len(loads[asked])  # one for each load
    return sum(shares, Fraction(0)) / len(shares) if shares else Fraction(0)


def fill_time(trace, order, *, running, cus, l2_lines, alone, of_l2):
    share, together = share_in_step(trace, order, running, l2_lines), min(cus, running, len(order)) * of_l2
    return round(alone + share * (together - alone)) if together > alone else alone
