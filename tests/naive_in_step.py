"""Oracle of workgroups in step: sets of tiles, each pair of workgroups by itself."""

from collections import Counter
from fractions import Fraction


def _spaced(n, last):
    return sorted({last * i // (n - 1) for i in range(n)})


def loads_of(trace, workgroup):
    """List of (tensor, tile) that a workgroup loads; a tile is a template and the lines that it has."""
    found = []
    for i in range(int(trace.start[workgroup]), int(trace.start[workgroup + 1])):
        template = int(trace.template[i])
        if not trace.is_write[template]:
            rel = trace.rel[trace.rel_start[template] : trace.rel_start[template + 1]]
            found.append((int(trace.tensor[template]), (template, *(int(trace.base[i]) + int(r) for r in rel))))
    return found


def share_in_step(trace, order, running, l2_lines):
    order = [one for one in order if trace.start[one] < trace.start[one + 1]]
    n, shares = min(running, len(order)), []
    for begin in _spaced(4, len(order) - n):
        loads = [loads_of(trace, int(one)) for one in order[begin : begin + n]]
        waits = len({line for one in loads for _, (_, *lines) in one for line in lines}) > l2_lines
        for asked in _spaced(8, n - 1) if n > 1 else ():
            if not loads[asked]:
                continue
            most = max(Counter(tensor for tensor, _ in loads[asked]).values())
            wanted = {tile for _, tile in loads[asked]}
            share = sum(
                min(Fraction(1), Fraction(sum(tile in wanted for _, tile in theirs), most))
                for i, theirs in enumerate(loads)
                if i != asked
            ) / (n - 1)
            shares += [share if waits else Fraction(0)] * len(loads[asked])  # one for each load
    return sum(shares, Fraction(0)) / len(shares) if shares else Fraction(0)


def fill_time(trace, order, *, running, cus, l2_lines, alone, of_l2):
    share, together = share_in_step(trace, order, running, l2_lines), min(cus, running, len(order)) * of_l2
    return round(alone + share * (together - alone)) if together > alone else alone
