"""Print the corpus with its verdicts and the processor time to each.

The virtual machine is loaded first, and compiled where no process of this installation has done that before; what it
took is a line of its own.
"""

from __future__ import annotations

import time

from .corpus import Remap
from .judge import REMAPS, judge

_SMALLEST = Remap(name="identity", source="", text="pid = pid\n", right="every grid")


def main() -> None:
    """Print one line a remap, then how many verdicts took less than 2 s."""
    begin, seconds = time.process_time(), []
    judge(_SMALLEST)
    print(f"{time.process_time() - begin:6.2f} s  to load or compile the virtual machine", flush=True)
    for remap in REMAPS:
        found = judge(remap)
        seconds.append(found.seconds)
        within = f"; where {remap.right}: {found.within.status}" if found.within else ""
        mark = "" if found.as_it_should and found.domain_proved else "  <-- NOT AS IT SHOULD BE"
        print(f"{found.seconds:6.2f} s  {remap.name}: {found.outcome.status}{within}{mark}", flush=True)
    quick = sum(one < 2 for one in seconds)
    print(f"{quick} of {len(seconds)} verdicts took less than 2 s of processor time; the longest {max(seconds):.2f} s")


if __name__ == "__main__":
    main()
