"""Sharing of lines, by sets of Python: slow and obviously right."""

import itertools


def lines_of(trace):
    """Set of lines that each workgroup touches, each with its tensor: one instruction and one line at a time."""
    found = []
    for w in range(trace.n_workgroups):
        mine = set()
        for i in range(trace.start[w], trace.start[w + 1]):
            t = trace.template[i]
            for e in range(trace.rel_start[t], trace.rel_start[t + 1]):
                mine.add((int(trace.tensor[t]), int(trace.base[i] + trace.rel[e])))
        found.append(mine)
    return found


def misses(lines, part, n_parts):
    """Distinct (part, line) pairs."""
    return sum(len(set().union(*(one for one, p in zip(lines, part, strict=True) if p == x))) for x in range(n_parts))


def cheapest(lines, sizes):
    """Fewest misses of any partition into parts of these sizes, all of them tried."""
    labels = [x for x, n in enumerate(sizes) for _ in range(n)]
    return min(misses(lines, part, len(sizes)) for part in set(itertools.permutations(labels)))
