"""Oracle of workgroups in step: sets of tiles, each pair of workgroups by itself."""

from collections import Counter
from fractions import Fraction


def _spaced(n, last):
    return sorted({last * i // (n - 1) for i in range(n)})


def loads_of(trace, workgroup):
    """List of (tensor, tile) that a workgroup loads; a tile is a template and a base."""
    found = []
    for i in range(int(trace.start[workgroup]), int(trace.start[workgroup + 1])):
        template = int(trace.template[i])
        if not trace.is_write[template]:
            found.append((int(trace.tensor[template]), (template, int(trace.base[i]))))
    return found


def share_in_step(trace, order, running):
    n, shares = min(running, len(order)), []
    for begin in _spaced(4, len(order) - n):
        loads = [loads_of(trace, int(one)) for one in order[begin : begin + n]]
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
            shares += [share] * len(loads[asked])  # one for each load
    return sum(shares, Fraction(0)) / len(shares) if shares else Fraction(0)


def fill_time(trace, order, running, alone, together):
    return round(alone + share_in_step(trace, order, running) * (together - alone)) if together > alone else alone
