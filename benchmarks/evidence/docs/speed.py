"""Write the tables of ``speed.md`` anew: ``make speed``."""

from __future__ import annotations

import subprocess
import sys

from .regenerate import ROOT, fill

PAGE = "benchmarks/evidence/pages/speed.md"


def main() -> None:
    """Run the speed benchmarks and put their tables into the page."""
    page = None
    for mark in ("suite", "commands"):
        command = [sys.executable, "-m", f"swizzle_benchmarks.evidence.speed.{mark}"]
        printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        page = fill(PAGE, mark, printed.rstrip(), page)
    (ROOT / PAGE).write_text(str(page), encoding="utf-8")
    print("written:", PAGE)


if __name__ == "__main__":
    main()
