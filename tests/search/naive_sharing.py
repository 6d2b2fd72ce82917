"""Sharing of lines, by sets of Python: slow and obviously right."""

import itertools


def lines_of(trace):
    """Set of lines that each workgroup touches."""
    found = []
    for w in range(trace.n_workgroups):
        lines = set()
        for i in range(trace.start[w], trace.start[w + 1]):
            t = trace.template[i]
            lines |= {int(trace.base[i]) + int(r) for r in trace.rel[trace.rel_start[t] : trace.rel_start[t + 1]]}
        found.append(lines)
    return found


def misses(lines, part, n_parts):
    """Distinct (part, line) pairs."""
    return sum(len(set().union(*(one for one, p in zip(lines, part, strict=True) if p == x))) for x in range(n_parts))


def cheapest(lines, sizes):
    """Fewest misses of any partition into parts of these sizes, all of them tried."""
    labels = [x for x, n in enumerate(sizes) for _ in range(n)]
    return min(misses(lines, part, len(sizes)) for part in set(itertools.permutations(labels)))
