"""The memory of a GPU in plain Python: which accesses find their row open, how much longer reads wait for writes."""

from collections import defaultdict

MASK = 2**64 - 1


def splitmix(x):
    """Steele, Lea and Flood, OOPSLA 2014."""
    x = (x + 0x9E3779B97F4A7C15) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


class OpenRows:
    """Each bank has the row open that was asked for last; a GPU without rows has all of them open."""

    def __init__(self, gpu):
        self.rows, self.line_bytes = gpu.hbm_rows, gpu.l2.line_bytes
        self.at_bank = {}

    def row_of(self, line):
        """Which stretches of memory the row has blocks in, and its place among their rows."""
        block = line * self.line_bytes // self.rows.block_bytes
        stretch = block // self.rows.stretch_blocks
        return stretch // self.rows.blocks, (block + splitmix(stretch)) % self.rows.stretch_blocks

    def opening(self, line, service, writes):
        """What an access takes beyond its service [fs]; its row is open afterwards."""
        if self.rows is None:
            return 0
        stretches, place = row = self.row_of(line)
        bank = splitmix(stretches * self.rows.stretch_blocks + place) % self.rows.open_rows
        if self.at_bank.get(bank) == row:
            return 0
        self.at_bank[bank] = row
        least = round((self.rows.write_ps if writes else self.rows.read_ps) * 1000)
        return max(0, least - service)


MICROSECOND = 10**9  # in femtoseconds
PICO = 1000


class Turnaround:
    """What memory was busy with; a GPU for which no wait is known has none."""

    def __init__(self, gpu):
        self.most = round((gpu.hbm.turnaround_ns or 0) * 10**6)
        self.busy, self.writing = defaultdict(int), defaultdict(int)

    def note(self, at, busy, writing):
        self.busy[at // MICROSECOND] += busy
        self.writing[at // MICROSECOND] += writing

    def lately(self, amounts, at):
        """Of the last microsecond [ps]: the present whole one as far as it goes, and the rest of the one before."""
        rest = (MICROSECOND - at % MICROSECOND) // PICO
        before = min(amounts[at // MICROSECOND - 1], MICROSECOND) // PICO
        return before * rest * PICO // MICROSECOND + amounts[at // MICROSECOND] // PICO

    def wait(self, at):
        share = min(MICROSECOND // PICO, self.lately(self.busy, at), 4 * self.lately(self.writing, at))
        mean = self.most * share * PICO // MICROSECOND
        return splitmix(at) % (2 * mean + 1)
