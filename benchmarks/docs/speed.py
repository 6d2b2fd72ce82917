"""Write the table of docs/speed.md anew: ``make speed``."""

from __future__ import annotations

import subprocess
import sys

from .regenerate import ROOT, fill

PAGE = "docs/speed.md"


def main() -> None:
    """Run the speed benchmark and put its tables into the page."""
    command = [sys.executable, "-m", "swizzle_benchmarks.speed.replay"]
    printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    (ROOT / PAGE).write_text(fill(PAGE, "speed", printed.rstrip()), encoding="utf-8")
    print("written:", PAGE)


if __name__ == "__main__":
    main()
