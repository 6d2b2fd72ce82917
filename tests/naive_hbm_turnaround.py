"""How much longer reads wait between writes, in plain Python: all that memory did is kept, by the microsecond."""

from collections import defaultdict

from tests.naive_hbm_rows import splitmix

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
