"""Oracle of workgroups that run at once: on which GPC, which tiles they load, and what share of them is in step."""

from collections import Counter
from fractions import Fraction

from tests import naive


def group_of(cu, gpu):
    """GPC of an SM."""
    groups = gpu.l2_partitions.cu_groups if gpu.l2_partitions else 1
    return sum(round(Fraction(n * gpu.cus_per_xcd, groups)) <= cu for n in range(1, groups + 1))


def spaced(n, last):
    return sorted({last * i // (n - 1) for i in range(n)})


def windows(trace, order, running):
    """Lists of workgroups that run at once, four of them where the order is long enough."""
    order = [int(one) for one in order if trace.start[one] < trace.start[one + 1]]
    n = min(running, len(order))
    return [order[begin : begin + n] for begin in spaced(4, len(order) - n)]


def loads_of(trace, workgroup):
    """List of (instruction, tensor, tile) that a workgroup loads; a tile is a template and the lines that it has."""
    found = []
    for i in range(int(trace.start[workgroup]), int(trace.start[workgroup + 1])):
        template, (lines, is_write) = int(trace.template[i]), naive.touches(trace, i)
        if not is_write:
            found.append((i, int(trace.tensor[template]), (template, *(line for line, _ in lines))))
    return found


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
