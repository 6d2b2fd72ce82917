"""Oracle of balance: one workgroup, one CU, one XCD after the other, in plain Python and whole numbers."""

from collections import defaultdict
from itertools import pairwise
from statistics import median_low, pvariance

from tests import naive


def work(trace):
    """Tensor instructions of each workgroup, and the bytes of the sectors that they touch."""
    instructions, touched = [], []
    for first, end in pairwise(trace.start.tolist()):
        instructions.append(end - first)
        touched.append(32 * sum(bits.bit_count() for i in range(first, end) for _, bits in naive.touches(trace, i)[0]))
    return instructions, touched


def least_middle_most(values):
    """The middle of an even number of values lies between two: both are allowed."""
    ordered = sorted(values)
    return (
        ordered[0],
        {median_low(ordered), (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) // 2},
        ordered[-1],
    )


def explained(instructions, coordinate_of):
    """Share of the variance of the work that a coordinate explains: 1 - (variance within its values) / (variance)."""
    at = defaultdict(list)
    for workgroup, n in enumerate(instructions):
        at[coordinate_of(workgroup)].append(n)
    within = sum(len(values) * pvariance(values) for values in at.values())
    return 1 - within / (len(instructions) * pvariance(instructions))


def balance(trace, order, gpu, finish, end):
    """Work and end of each XCD, ideal and tail."""
    instructions, _ = work(trace)
    of_xcd = [0] * gpu.xcds
    for xcd, mine in enumerate(naive.queues(len(order), gpu)):
        of_xcd[xcd] = sum(instructions[order[w]] for w in mine)
    cus = [last for xcd in finish for last in xcd]
    return {
        "per_xcd_instructions": of_xcd,
        "per_xcd_finish": [max(xcd) for xcd in finish],
        "ideal": sum(cus) / len(cus),
        "tail": end - min(cus),
    }
