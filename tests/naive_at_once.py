"""Oracle of workgroups that run at once: on which GPC, windows of an order, and the tiles that each loads."""

from fractions import Fraction


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
        template = int(trace.template[i])
        if not trace.is_write[template]:
            rel = trace.rel[trace.rel_start[template] : trace.rel_start[template + 1]]
            found.append((i, int(trace.tensor[template]), (template, *(int(trace.base[i]) + int(r) for r in rel))))
    return found
