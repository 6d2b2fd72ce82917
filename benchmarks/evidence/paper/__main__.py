"""``python -m swizzle_benchmarks.evidence.paper``: figures 2, 5, 14, 15, 16 and the audit of arXiv 2508.20258."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from .. import PAGES
from .recorded import FOLDER

OUT = PAGES / "paper"


def main(words: list[str] | None = None) -> int:
    """Make what is asked for; what an earlier, or a stopped, command worked out is not worked out again."""
    asked = _parser().parse_args(words)
    from xcd_model.errors import SwizzleSimError, UnknownName  # noqa: PLC0415

    from .figures import PARTS  # noqa: PLC0415  (--help need not wait)
    from .page import make, redraw  # noqa: PLC0415
    from .settings import Settings  # noqa: PLC0415

    settings = Settings(quick=asked.quick, studies=asked.studies, processes=asked.processes, again=asked.again)
    try:
        if asked.quick and asked.out == OUT:
            raise SwizzleSimError(f"--quick is not for {OUT.name}, which holds the real figures: name another --out")
        for name in asked.only or ():
            if name not in PARTS:
                raise UnknownName("figure", name, PARTS)
        names = asked.only or list(PARTS)
        made = redraw(names, asked.out) if asked.redraw else make(names, settings, asked.out)
    except SwizzleSimError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"error: {asked.out}: cannot be written ({error.strerror})", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ninterrupted; the same command goes on from here", file=sys.stderr)
        return 130
    if asked.json:
        print(json.dumps(made, indent=1, allow_nan=False))
    else:
        print("\n".join(str(path) for path in sorted(asked.out.iterdir())))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m swizzle_benchmarks.evidence.paper", description=__doc__)
    parser.add_argument("--only", action="append", metavar="PART", help="figure-2, 5, 14, 15, 16 or audit; repeatable")
    parser.add_argument("--quick", action="store_true", help="small sizes: whether it works, not what comes out")
    parser.add_argument("--out", type=Path, default=OUT, help="folder to write to (%(default)s)")
    parser.add_argument("--studies", type=Path, default=FOLDER, help="folder of recordings, such as studies/recorded")
    parser.add_argument("--processes", type=_positive, help="pieces of work at a time; one a core by default")
    parser.add_argument("--again", action="store_true", help="work out even what is kept from an earlier run")
    parser.add_argument("--redraw", action="store_true", help="pictures and page from the numbers in --out alone")
    parser.add_argument("--json", action="store_true", help="print the numbers as one JSON document on stdout")
    return parser


def _positive(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: at least 1")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
