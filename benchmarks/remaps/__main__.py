"""Print the corpus with its verdicts and the processor time to each."""

from __future__ import annotations

from .judge import REMAPS, judge


def main() -> None:
    """Print one line a remap, then how many verdicts took less than 2 s."""
    seconds = []
    for remap in REMAPS:
        found = judge(remap)
        seconds.append(found.seconds)
        within = f"; where {remap.right}: {found.within.status}" if found.within else ""
        mark = "" if found.as_it_should and found.domain_proved else "  <-- NOT AS IT SHOULD BE"
        print(f"{found.seconds:6.2f} s  {remap.name}: {found.outcome.status}{within}{mark}", flush=True)
    quick = sum(one < 2 for one in seconds)
    print(f"{quick} of {len(seconds)} verdicts took less than 2 s of processor time; the longest {max(seconds):.1f} s")


if __name__ == "__main__":
    main()
