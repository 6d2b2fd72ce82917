"""Oracle of the timed replay: one event after the other, whole numbers of femtoseconds [fs], nothing clever."""

from dataclasses import dataclass

import numpy as np

from tests import naive
from tests.naive_coalescer import read_time
from tests.naive_hbm import OpenRows, Turnaround
from tests.naive_in_step import fill_time
from tests.naive_rates import computes_for, jitter, rates_of


@dataclass
class Run:
    """``issued`` is a list of (time, XCD, tensor, {column: count}); ``written`` the same of what was written back."""

    trace: object
    gpu: object
    issued: list
    written: list
    time_fs: int
    rates: dict
    opening_fs: int
    cu_free: dict

    def finish(self):
        """Nested lists (XCD, CU): when each CU has computed its last."""
        return [[self.cu_free[xcd, cu] for cu in range(self.gpu.cus_per_xcd)] for xcd in range(self.gpu.xcds)]

    def counts(self, bin_fs):
        counts = naive.Counts(self.trace, self.gpu)
        for time, xcd, tensor, columns in self.issued + self.written:
            for column, count in columns.items():
                counts.add(time // bin_fs, xcd, tensor, column, count)
        return counts

    def table(self, bin_fs):
        """Array (bin, XCD, column): an instruction counts when it issues, the flush in the last bin."""
        counts = self.counts(bin_fs)
        found = np.zeros((self.issued[-1][0] // bin_fs + 1, self.gpu.xcds, len(naive.COLUMNS)), np.int64)
        for when, columns in counts.when.items():
            found[when] = naive.as_table([columns])[0]
        return found

    def totals(self):
        """Array (XCD, column)."""
        return self.table(self.issued[-1][0] + 1)[0]

    def by_tensor(self):
        """Nested lists (tensor, XCD, column)."""
        return naive.as_table(self.counts(self.issued[-1][0] + 1).by_tensor)


class Memory:
    """The caches, when their lines are there, and when each port is free again."""

    def __init__(self, trace, gpu, caches):
        self.gpu, self.caches = gpu, caches
        self.rate = rates_of(gpu)
        self.ready = [{} for _ in range(gpu.xcds)]  # when the data of (side, line) is in the L2; only read if held
        self.stored = [set() for _ in range(gpu.xcds)]  # those of them that a store made, so that none is on its way
        self.ready_l1 = {place: {} for place in caches.l1}
        self.l1_free = dict.fromkeys(caches.l1, 0)
        self.taken = {}  # when a CU has taken in what its loads got from the L2
        self.l2_free = [0] * gpu.xcds
        self.fabric_free = [0] * gpu.xcds
        self.mall_free = 0
        self.hbm_free = 0
        self.rows, self.opening = OpenRows(gpu), 0
        self.mixed = Turnaround(gpu)
        self.tensor_of = naive.Counts(trace, gpu).tensor_of
        self.written = []  # (time, XCD, tensor, counts)

    def read(self, now, xcd, cu, lines, waves, passes):
        """Return when the data is there, and what to count."""
        counts, held_until, port_free = {}, 0, now
        if self.gpu.l1:
            passes = passes if self.gpu.l1.by_bank and passes else sum(waves)
            port_free = max(now, self.l1_free[xcd, cu]) + passes * self.rate["l1"]
            self.l1_free[xcd, cu] = port_free
            held_until = port_free + self.rate["l1_latency"]
            counts = {"l1_requests": sum(waves), "l1_hits": sum(waves)}
            missing = []
            for line, sectors in lines:
                wanted = naive.pieces(sectors, self.gpu.l2.fetch_bytes)
                if not self.caches.l1[xcd, cu].touch(line, wanted=wanted)[0]:
                    held_until = max(held_until, self.ready_l1[xcd, cu][line])
                else:
                    missing.append((line, sectors))
            lines = missing
            counts["l1_hits"] -= len(missing)
        arrive = held_until
        if lines:
            l2_arrive, l2_counts = self._read_l2(now, port_free, xcd, cu, lines)
            arrive, counts = max(arrive, l2_arrive), counts | l2_counts
        if self.gpu.l1:
            for line, _ in lines:
                self.ready_l1[xcd, cu][line] = arrive
        return arrive, counts

    def _read_l2(self, issued, now, xcd, cu, lines):
        requests = sum(len(naive.pieces(sectors, self.gpu.l2.read_request_bytes)) for _, sectors in lines)
        in_time = max(now, self.l2_free[xcd]) + self.rate["l2_latency"]
        l2_end = self._l2_port(now, xcd, requests * self.rate["l2_read"])
        taken = max(issued, self.taken.get((xcd, cu), 0)) + requests * self.rate["cu_fill"]
        taken = self.taken[xcd, cu] = max(l2_end, taken)
        wait, fetched, from_hbm, writebacks, opened_before = 0, 0, 0, 0, self.opening
        l2, brought, at_the_other = self.caches.l2[xcd], [], []
        for line, sectors in lines:
            wanted = naive.pieces(sectors, self.gpu.l2.fetch_bytes)
            lacking, driven_out, held_at, lacked_at = l2.touch(line, cu, wanted=wanted)
            writebacks += sum(self._drive_out(issued, xcd, gone) for gone in driven_out)
            brought += [(side, line) for side in lacked_at]
            if not lacking:
                ready = self.ready[xcd].get((held_at, line), 0)
                self.caches.hits_under_miss += ready > in_time and (held_at, line) not in self.stored[xcd]
                if held_at == l2.partition_of(cu):
                    wait = max(wait, ready)
                else:
                    at_the_other.append(ready)
                    self.caches.remote_hits += len(naive.pieces(sectors, self.gpu.l2.read_request_bytes))
                continue
            fetched += lacking
            if not self.caches.mall or self.caches.mall.touch(line)[0]:
                from_hbm += lacking
                self.opening += self.rows.opening(line, lacking * self.rate["hbm"], writes=False)
        opening = self.opening - opened_before
        mall_end, hbm_end = self._beyond(l2_end, xcd, fetched, from_hbm, writebacks, opening)
        fills = []
        if fetched > from_hbm:
            fills.append(max(mall_end, taken) + self.rate["mall_latency"])
        if from_hbm:
            fills.append(max(hbm_end, taken) + self.rate["hbm_latency"] + self.mixed.wait(hbm_end))
        if at_the_other:
            fills.append(max(taken + self.rate["l2_latency"] + self.rate["l2_far"], *at_the_other))
        for at in brought:
            self.ready[xcd][at] = max(fills)
            self.stored[xcd].discard(at)
        arrive = max(taken + self.rate["l2_latency"], wait, *fills)
        counts = {"read_requests": requests, "read_misses": fetched}
        if self.caches.mall:
            counts |= {"mall_requests": fetched, "mall_hits": fetched - from_hbm}
        return arrive, counts

    def write(self, now, xcd, cu, lines):
        """Return when the L2 has taken the stores (nobody waits for more), and what to count."""
        lines = [(line, sectors, naive.pieces(sectors, self.gpu.l2.write_request_bytes)) for line, sectors in lines]
        requests = sum(len(dirty) for *_, dirty in lines)
        l2_end = self._l2_port(now, xcd, requests * self.rate["l2_write"])
        misses, writebacks, opened_before = 0, 0, self.opening
        for line, sectors, dirty in lines:
            wanted = naive.pieces(sectors, self.gpu.l2.fetch_bytes)
            lacking, driven_out, _, lacked_at = self.caches.l2[xcd].touch(line, cu, dirty, wanted, writes=True)
            writebacks += sum(self._drive_out(now, xcd, gone) for gone in driven_out)
            misses += lacking
            self.ready[xcd] |= {(side, line): l2_end for side in lacked_at}
            self.stored[xcd] |= {(side, line) for side in lacked_at}
        self._beyond(l2_end, xcd, 0, 0, writebacks, self.opening - opened_before)
        return l2_end, {"write_requests": requests, "write_misses": misses}

    def flush(self, now):
        """What is dirty at the end is written back; the lines stay."""
        for xcd, part in [(xcd, part) for xcd, l2 in enumerate(self.caches.l2) for part in l2.parts]:
            for held in part.sets.values():
                for line, dirty in held.items():
                    self.caches.flushed += self._drive_out(now, xcd, (line, dirty))
                    dirty.clear()

    def _drive_out(self, now, xcd, driven_out):
        """Note a line that leaves the L2; return its dirty pieces."""
        if not driven_out or not driven_out[1]:
            return 0
        line, dirty = driven_out
        self.written.append((now, xcd, self.tensor_of(line), {"writebacks": len(dirty)}))
        self.opening += self.rows.opening(line, len(dirty) * self.rate["hbm_wb"], writes=True)
        return len(dirty)

    def _l2_port(self, now, xcd, service):
        self.l2_free[xcd] = max(now, self.l2_free[xcd]) + service
        return self.l2_free[xcd]

    def _beyond(self, l2_end, xcd, filled, from_hbm, writebacks, opening):
        """Fabric, then Infinity Cache, then HBM, each serving first come first served; return the last two's ends."""
        mall_end = hbm_end = None
        if filled or writebacks:
            begin = max(l2_end, self.fabric_free[xcd])
            self.fabric_free[xcd] = begin + filled * self.rate["fabric"] + writebacks * self.rate["fabric_wb"]
            mall_end = self.fabric_free[xcd]
            if self.gpu.mall:
                begin = max(mall_end, self.mall_free)
                self.mall_free = begin + filled * self.rate["mall"] + writebacks * self.rate["mall_wb"]
                mall_end = self.mall_free
        if from_hbm or writebacks:
            begin = max(mall_end, self.hbm_free)
            self.hbm_free = begin + from_hbm * self.rate["hbm"] + writebacks * self.rate["hbm_wb"] + opening
            hbm_end = self.hbm_free
            written = writebacks * self.rate["hbm_wb"]
            self.mixed.note(hbm_end, from_hbm * self.rate["hbm"] + written + opening, written)
        return mall_end, hbm_end


class Running:
    """Workgroups that one slot computes in turn: the instructions, and when each of the present one's was done."""

    def __init__(self, trace, workgroups, hardware_id):
        self.trace, self.workgroups, self.hardware_id = trace, workgroups, hardware_id
        self.todo, self.arrived, self.done = [], [], []

    def begin(self, now):
        """Start on the next workgroup that touches anything; False if there is none."""
        while not self.todo and (workgroup := next(self.workgroups, None)) is not None:
            self.workgroup = workgroup
            self.todo = list(range(int(self.trace.start[self.workgroup]), int(self.trace.start[self.workgroup + 1])))
            self.arrived, self.done, self.began = [], [], now
            self.age = self.hardware_id[self.workgroup]
        return bool(self.todo)

    def waits(self):
        """When the data of the next instruction to compute was there, or None if none has been issued."""
        return self.arrived[len(self.done)] if len(self.done) < len(self.arrived) else None

    def issues_at(self, now, in_flight, step, step_fs, after_products):
        """Instruction k may be issued when instruction k - in_flight is done; None while nobody knows when that is.

        The first of a step waits for the data of the step that is in_flight / step - 1 before it, too, or with
        ``after_products`` until all of the step with k - in_flight are done; and then for step_fs.
        """
        k = len(self.arrived)
        first_of_step = step and k % step == 0
        behind = k - in_flight
        if first_of_step and after_products:
            behind += step - 1
        if behind >= len(self.done):
            return None
        at = max(now, self.done[behind] if behind >= 0 else self.began)
        if not first_of_step:
            return at
        if not after_products:
            first = (k // step - (in_flight // step - 1)) * step
            if first >= 0:
                at = max(at, *self.arrived[first : first + step])
        return at + step_fs

    def computes_for_all(self, step):
        """How many instructions' time the next one computes: of a step's instructions the last computes for all."""
        at, last = len(self.done), not self.todo and len(self.done) + 1 == len(self.arrived)
        if not step:
            return 1
        return at % step + 1 if last or at % step == step - 1 else 0


class Replay:
    """A replay on its way: who runs where, when each CU is free, and when each slot can issue or begin."""

    def __init__(self, trace, order, gpu, occupancy, pace, programs, claims, caches):
        self.trace, self.gpu, self.pace = trace, gpu, pace
        self.memory = Memory(trace, gpu, caches)
        rate, slots = self.memory.rate, gpu.xcds * gpu.cus_per_xcd * occupancy
        running = min(slots, programs or slots)
        if rate["cu_fill"]:
            l2 = {"l2_lines": gpu.l2.size_bytes // gpu.l2.line_bytes, "of_l2": rate["l2_read"]}
            how = l2 | {"running": running, "cus": gpu.cus_per_xcd}
            rate["cu_fill"] = fill_time(trace, order, alone=rate["cu_fill"], **how)
        rate["l2_read"] = read_time(trace, order, gpu, running=running, alone=rate["l2_read"])
        self.waiting = naive.workgroups_of(order, gpu, programs, claims)
        self.hardware_id = {int(workgroup): w for w, workgroup in enumerate(order)}
        self.cus = [(xcd, cu) for xcd in range(gpu.xcds) for cu in range(gpu.cus_per_xcd)]
        self.n_slots = gpu.cus_per_xcd * occupancy
        self.cu_free, self.scalar_free = dict.fromkeys(self.cus, 0), {}
        self.under_way = {cu: [] for cu in self.cus}  # (when it is back, requests) of each load, in the order of issue
        self.running = {}
        self.can_issue = {(slot, xcd): 0 for slot in range(self.n_slots) for xcd in range(gpu.xcds)}
        self.age = dict.fromkeys(self.can_issue, 0)
        self.ran = set()  # slots that have had a workgroup
        self.issued, self.ends = [], []

    def run(self):
        """One event after the other: of those at one time CUs take up work first, then the oldest workgroup issues."""
        while True:
            compute = min(self.computes(), default=None)
            issue = min(((time, self.age[at], *at) for at, time in self.can_issue.items()), default=None)
            if compute and (not issue or compute[0] <= issue[0]):
                self.compute(*compute)
            elif issue:
                self.issue(*issue)
            else:
                return

    def computes(self):
        """When each CU can next compute, and for which slot: whose data was there first, of those the oldest."""
        for xcd, cu in self.cus:
            mine = [
                (arrived, one.age, slot)
                for slot in range(cu, self.n_slots, self.gpu.cus_per_xcd)
                if (one := self.running.get((slot, xcd))) and (arrived := one.waits()) is not None
            ]
            if mine:
                arrived, _, slot = min(mine)
                yield max(arrived, self.cu_free[xcd, cu]), (xcd, cu), slot

    def compute(self, now, cu, slot):
        at = slot, cu[0]
        mine = self.running[at]
        took = computes_for(self.pace["seed"], mine.workgroup, self.pace["compute_fs"], self.pace["speed_variation"])
        self.cu_free[cu] = now + took * mine.computes_for_all(self.pace["step"])
        mine.done.append(self.cu_free[cu])
        self.ends.append(self.cu_free[cu])
        if not mine.todo and len(mine.done) == len(mine.arrived):
            self.can_issue[at] = self.cu_free[cu]
        elif mine.todo and at not in self.can_issue:
            self.go_on(now, at, mine)

    def go_on(self, now, at, mine):
        """Note when a slot issues its next instruction, if that is known."""
        pace = {key: self.pace[key] for key in ("in_flight", "step", "step_fs", "after_products")}
        if mine.todo and (known := mine.issues_at(now, **pace)) is not None:
            self.can_issue[at] = known

    def remapped(self, now, cu):
        """When a CU has remapped one more workgroup."""
        if self.pace["remap_fs"]:
            self.scalar_free[cu] = max(now, self.scalar_free.get(cu, 0)) + self.pace["remap_fs"]
            return max(self.scalar_free[cu], now + self.pace["remap_wait_fs"])
        return now

    def begin(self, now, slot, xcd):
        """Return the workgroup of a slot, its next one if the last is done; None if there is none."""
        mine = self.running.get((slot, xcd))
        if mine and not mine.todo:
            mine.begin(now)  # of a persistent program; it may have no more work
        while (not mine or not mine.todo) and self.waiting[xcd]:
            mine = self.running[slot, xcd] = Running(self.trace, self.waiting[xcd].pop(0), self.hardware_id)
            mine.begin(now)
        return mine if mine and mine.todo else None

    def issue(self, now, _, slot, xcd):
        before = self.running.get((slot, xcd))
        goes_on = before and before.todo
        mine, cu = self.begin(now, slot, xcd), (xcd, slot % self.gpu.cus_per_xcd)
        if mine and not goes_on:
            gap = self.memory.rate["gap"] if mine is not before and (slot, xcd) in self.ran else 0
            mine.began = self.remapped(now + gap, cu)
            if mine.began > now:
                self.can_issue[slot, xcd] = mine.began
                self.age[slot, xcd] = mine.age
                return
        self.ran.add((slot, xcd))
        if mine is None:
            self.running.pop((slot, xcd), None)
            del self.can_issue[slot, xcd]  # the slot retires
            return
        self.age[slot, xcd] = mine.age
        waits = self.room_at(now, slot, xcd, mine.todo[0])
        if waits > now:
            self.can_issue[slot, xcd] = waits
            return
        mine.arrived.append(self.send(now, slot, xcd, mine))
        del self.can_issue[slot, xcd]
        self.go_on(now, (slot, xcd), mine)

    def room_at(self, now, slot, xcd, instruction):
        """When the CU of a slot can issue an instruction: now, or when its first load under way is back."""
        cu, limit = (xcd, slot % self.gpu.cus_per_xcd), self.gpu.limits.reads_in_flight_per_cu
        self.under_way[cu] = [load for load in self.under_way[cu] if load[0] > now]  # they come back in order
        full = limit and sum(requests for _, requests in self.under_way[cu]) >= limit
        return self.under_way[cu][0][0] if full and not naive.touches(self.trace, instruction)[1] else now

    def send(self, now, slot, xcd, mine):
        """Send the next instruction of a slot; return when its lines are there."""
        instruction, cu = mine.todo.pop(0), (xcd, slot % self.gpu.cus_per_xcd)
        lines, is_write = naive.touches(self.trace, instruction)
        if is_write:
            arrive, counts = self.memory.write(now, *cu, lines)
        else:
            arrive, counts = self.read(now, cu, lines, instruction)
            arrive += jitter(self.pace["seed"], mine.workgroup, len(mine.arrived), self.pace["jitter_fs"])
        tensor = int(self.trace.tensor[self.trace.template[instruction]])
        self.issued.append((now, xcd, tensor, {"instructions": 1} | counts))
        return arrive

    def whole(self):
        """Run to the end, when what is dirty is written back too."""
        self.run()
        queues = [*self.memory.l2_free, *self.memory.fabric_free, self.memory.mall_free, self.memory.hbm_free]
        time_fs, opening_fs, memory = max(self.ends + queues), self.memory.opening, self.memory
        memory.flush(self.issued[-1][0])
        return Run(self.trace, self.gpu, self.issued, memory.written, time_fs, memory.rate, opening_fs, self.cu_free)

    def read(self, now, cu, lines, instruction):
        waves = naive.wave_requests(self.trace, instruction), int(self.trace.waves[self.trace.template[instruction]][3])
        arrive, counts = self.memory.read(now, *cu, lines, *waves)
        if counts.get("read_requests"):
            last = self.under_way[cu][-1][0] if self.under_way[cu] else 0
            self.under_way[cu].append((max(arrive, last), counts["read_requests"]))
        return arrive + (self.memory.rate["copy"] if self.pace["step"] else 0), counts


PACE = dict.fromkeys(
    ("jitter_fs", "seed", "speed_variation", "step", "remap_fs", "remap_wait_fs", "step_fs", "after_products"), 0
)


def replay(trace, order, gpu, workgroups_per_cu, *, programs=None, claims=None, caches=None, **pace):
    """Replay a whole grid and return a `Run`; ``pace``: in_flight and compute_fs, and what differs from `PACE`."""
    caches = caches or naive.Caches(gpu)
    caches.begin()
    return Replay(trace, order, gpu, workgroups_per_cu, PACE | pace, programs, claims, caches).whole()
