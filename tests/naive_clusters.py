"""Oracle of clusters: what each workgroup sends of a program; both replays where they begin and fetch together."""

import numpy as np

from tests import naive, naive_timed


def workgroups_of_program(trace, program, size, common, multicast):
    """For each workgroup of a cluster, what it sends: a list of (touches, writes, tensor, whether all wait for it)."""
    mine = [[] for _ in range(size)]
    for instruction in range(int(trace.start[program]), int(trace.start[program + 1])):
        lines, is_write = naive.touches(trace, instruction)
        tensor = int(trace.tensor[trace.template[instruction]])
        needed_by_all = not is_write and trace.tensors[tensor].name in common
        together = needed_by_all and multicast and len(lines) >= size
        for place in range(size):
            if needed_by_all and not together:
                part = lines
            elif len(lines) >= size:  # as even as can be, the first workgroup the first lines
                part = lines[len(lines) * place // size : len(lines) * (place + 1) // size]
            else:  # too few to go round: every workgroup reads all of them, and one writes each
                part = lines[place : place + 1] if is_write else lines
            if part:
                mine[place].append((part, is_write, tensor, together))
    return mine


def places_of(gpu, workgroups_per_cu, size):
    """For each XCD and cluster that it has room for: the slots, on neighbouring CUs."""
    whole = gpu.cus_per_xcd // size
    groups = [
        [level * gpu.cus_per_xcd + group * size + place for place in range(size)]
        for level in range(workgroups_per_cu)
        for group in range(whole)
    ]
    return [(xcd, group) for group in groups for xcd in range(gpu.xcds)]


class Queue:
    """Clusters that wait, XCD by XCD: in the order of dispatch."""

    def __init__(self, trace, order, gpu, size):
        self.trace, self.order, self.size = trace, order, size
        self.of_xcd = naive.queues(len(order) // size, gpu)

    def take(self, xcd):
        """[(hardware id, workgroup, its instructions)] of the next cluster that has any; [] where none is left."""
        while self.of_xcd[xcd]:
            first = self.of_xcd[xcd].pop(0) * self.size
            found = []
            for w in range(first, first + self.size):
                workgroup = int(self.order[w])
                found.append((w, workgroup, list(range(*map(int, self.trace.start[workgroup : workgroup + 2])))))
            if any(todo for *_, todo in found):
                return found
        return []


def together(trace, instruction):
    return bool(trace.multicast[trace.template[instruction]])


def turns(trace, order, gpu, workgroups_per_cu, size):
    """As `naive.turns`, of a trace of workgroups.

    At the beginning of a turn a cluster whose workgroups have all ended makes way for the next, and a multicast load
    is issued in a turn at whose beginning all have come to one.
    """
    queue, places = Queue(trace, order, gpu, size), places_of(gpu, workgroups_per_cu, size)
    todo = {(slot, xcd): [] for xcd, group in places for slot in group}
    while True:
        issues = []
        for xcd, group in places:
            if not any(todo[slot, xcd] for slot in group):
                todo.update({(slot, xcd): t for slot, (*_, t) in zip(group, queue.take(xcd), strict=False)})
            heads = [todo[slot, xcd][0] for slot in group if todo[slot, xcd]]
            all_there = len(heads) == size and all(together(trace, head) for head in heads)
            for slot in group:
                if todo[slot, xcd] and (all_there or not together(trace, todo[slot, xcd][0])):
                    issues.append((slot, xcd))
        if not issues:
            return
        yield [(xcd, slot % gpu.cus_per_xcd, todo[slot, xcd].pop(0)) for slot, xcd in sorted(issues)]


def replay(trace, order, gpu, workgroups_per_cu, size):
    """As `naive.replay`."""
    caches, counts, turn = naive.Caches(gpu), naive.Counts(trace, gpu), 0
    for turn, issues in enumerate(turns(trace, order, gpu, workgroups_per_cu, size)):
        for xcd, cu, instruction in issues:
            naive._issue(trace, instruction, caches, xcd, cu, counts, turn)
    counts.flush(turn, caches)
    return naive.as_table([counts.when[t] for t in range(turn + 1)]), naive.as_table(counts.by_tensor)


class Replay(naive_timed.Replay):
    """A timed replay of clusters."""

    def __init__(self, trace, order, gpu, occupancy, pace, size):
        super().__init__(trace, order, gpu, occupancy, pace, None, None, naive.Caches(gpu))
        self.size, self.queue = size, Queue(trace, order, gpu, size)
        self.group_of = {(slot, xcd): group for xcd, group in places_of(gpu, occupancy, size) for slot in group}
        self.free, self.came = set(), set()  # places that wait for the next cluster, and for a common fetch

    def issue(self, now, _, slot, xcd):
        group = self.group_of.get((slot, xcd))
        mine = self.running.get((slot, xcd))
        if group is None or not mine or not mine.todo:
            del self.can_issue[slot, xcd]
            if group is not None:
                self.free.add((slot, xcd))
                self.next_cluster(now, group, xcd)
            return
        senders = [slot]
        if together(self.trace, mine.todo[0]):
            senders = group
        waits = self.room_at(now, slot, xcd, mine.todo[0])
        if waits == now and len(senders) > 1:
            self.came.add((slot, xcd))
            if not all((one, xcd) in self.came for one in group):
                del self.can_issue[slot, xcd]
                return
            waits = max(self.room_at(now, one, xcd, mine.todo[0]) for one in group)
        if waits > now:
            self.can_issue[slot, xcd] = waits
            return
        arrivals = [self.send(now, one, xcd, self.running[one, xcd]) for one in senders]
        for one in senders:
            self.came.discard((one, xcd))
            its = self.running[one, xcd]
            its.arrived.append(max(arrivals))
            self.can_issue.pop((one, xcd), None)
            self.go_on(now, (one, xcd), its)

    def next_cluster(self, now, group, xcd):
        """Begin the next cluster if all places of a group are free."""
        if not all((slot, xcd) in self.free for slot in group):
            return
        gap = self.memory.rate["gap"] if (group[0], xcd) in self.ran else 0
        for slot, (w, workgroup, todo) in zip(group, self.queue.take(xcd), strict=False):
            self.ran.add((slot, xcd))
            if todo:
                one = self.running[slot, xcd] = naive_timed.Running(self.trace, iter([workgroup]), self.hardware_id)
                begins = self.remapped(now + gap, (xcd, slot % self.gpu.cus_per_xcd))
                one.begin(begins)
                self.free.discard((slot, xcd))
                self.can_issue[slot, xcd], self.age[slot, xcd] = begins, w


def replay_timed(trace, order, gpu, workgroups_per_cu, size, **pace):
    """As `naive_timed.replay`."""
    return Replay(trace, order, gpu, workgroups_per_cu, naive_timed.PACE | pace, size).whole()


def expanded(order, size):
    return np.array([k * size + place for k in order for place in range(size)])
