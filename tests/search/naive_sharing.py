"""Sharing of lines, by sets of Python: slow and obviously right."""

import itertools

from tests import naive


def lines_of(trace):
    """Set of lines that each workgroup touches, each with its tensor: one instruction and one line at a time."""
    tensor = trace.tensor[trace.template].tolist()
    return [
        {(tensor[i], line) for i in range(first, end) for line, _ in naive.touches(trace, i)[0]}
        for first, end in itertools.pairwise(trace.start.tolist())
    ]


def misses(lines, part, n_parts):
    """Distinct (part, line) pairs."""
    return sum(len(set().union(*(one for one, p in zip(lines, part, strict=True) if p == x))) for x in range(n_parts))


def cheapest(lines, sizes):
    """Fewest misses of any partition into parts of these sizes, all of them tried."""
    labels = [x for x, n in enumerate(sizes) for _ in range(n)]
    return min(misses(lines, part, len(sizes)) for part in set(itertools.permutations(labels)))
