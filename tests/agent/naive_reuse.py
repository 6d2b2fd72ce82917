"""Kinds of reuse, written to be read: every touch of every line, in a list, for each XCD."""

from swizzle_sim.report.bottleneck import ALONG_M, ALONG_N, DIAGONAL, FIRST, FIRST_HERE, LATER, OWN


def schedule(trace, order, gpu, occupancy, programs):
    """For each XCD its (tile, instruction) pairs in lockstep; program p computes tiles p, p + programs, ..."""
    slots = gpu.cus_per_xcd * occupancy
    issued = []
    for xcd in range(gpu.xcds):
        waiting = [p for p in range(programs) if (p + gpu.dispatch_offset) % gpu.xcds == xcd]
        running, mine = [None] * slots, []
        while waiting or any(running):
            for slot in range(slots):
                if not running[slot]:
                    if not waiting:
                        continue
                    tiles = [order[w] for w in range(waiting.pop(0), len(order), programs)]
                    running[slot] = [(t, i) for t in tiles for i in range(trace.start[t], trace.start[t + 1])]
                mine.append(running[slot].pop(0))
        issued.append(mine)
    return issued


def naive_reuse(trace, order, gpu, occupancy, columns, programs):
    """(tensor, kind, missed) of every touch, XCD by XCD; tiles are numbered row by row."""
    place = {int(tile): w for w, tile in enumerate(order)}
    capacity = gpu.l2.size_bytes // gpu.l2.line_bytes
    touched = []  # (position in its XCD, xcd, line, workgroup, tensor)
    lives = {}
    for xcd, mine in enumerate(schedule(trace, order, gpu, occupancy, programs)):
        for position, (workgroup, instruction) in enumerate(mine):
            lives.setdefault(workgroup, [position, position])[1] = position
            template = trace.template[instruction]
            for entry in range(trace.rel_start[template], trace.rel_start[template + 1]):
                line = int(trace.base[instruction] + trace.rel[entry])
                touched.append((position, xcd, line, workgroup, int(trace.tensor[template])))
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
