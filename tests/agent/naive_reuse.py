"""Kinds of reuse, written to be read: every touch of every line, in a list, for each XCD."""

import itertools

import numpy as np

from swizzle_sim.report.bottleneck import ALONG_M, ALONG_N, DIAGONAL, FIRST, FIRST_HERE, LATER, OWN
from tests.naive import touches, turns


def naive_reuse(trace, order, gpu, occupancy, columns, programs):
    """(tensor, kind, missed) of every touch, XCD by XCD; tiles are numbered row by row."""
    place = {int(tile): w for w, tile in enumerate(order)}
    capacity = gpu.l2.size_bytes // gpu.l2.line_bytes
    touched = []  # (position in its XCD, xcd, line, workgroup, tensor)
    lives = {}
    positions = [itertools.count() for _ in range(gpu.xcds)]
    for turn in turns(trace, order, gpu, occupancy, programs):
        for xcd, _, instruction in turn:
            position = next(positions[xcd])
            workgroup = int(np.searchsorted(trace.start, instruction, side="right")) - 1
            lives.setdefault(workgroup, [position, position])[1] = position
            tensor = int(trace.tensor[trace.template[instruction]])
            touched += [(position, xcd, line, workgroup, tensor) for line, _ in touches(trace, instruction)[0]]
    first_of_all = {}
    for position, xcd, line, _, _ in touched:
        first_of_all[line] = min(first_of_all.get(line, (position, xcd)), (position, xcd))
    rows, stacks, last, opened = [], {}, {}, set()
    for position, xcd, line, workgroup, tensor in touched:
        stack = stacks.setdefault(xcd, [])  # most recent last
        if line not in stack:
            kind = FIRST if first_of_all[line] == (position, xcd) and line not in opened else FIRST_HERE
            opened |= {line} if kind == FIRST else set()
            missed = True
        else:
            missed = len(stack) - 1 - stack.index(line) >= capacity
            before = last[xcd, line]
            (row, col), (row_before, col_before) = divmod(workgroup, columns), divmod(before, columns)
            if place[before] % programs == place[workgroup] % programs:
                kind = OWN
            elif lives[workgroup][0] > lives[before][1]:
                kind = LATER
            elif col == col_before:
                kind = ALONG_M
            elif row == row_before:
                kind = ALONG_N
            else:
                kind = DIAGONAL
            stack.remove(line)
        stack.append(line)
        last[xcd, line] = workgroup
        rows.append((tensor, kind, missed))
    return rows
