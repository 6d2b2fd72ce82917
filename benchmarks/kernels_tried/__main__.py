"""Try published kernels, as their packages have them, and write ``docs/kernels-tried.md``.

python -m swizzle_benchmarks.kernels_tried liger:rope ...   # capture and rewrite these, then write the page
python -m swizzle_benchmarks.kernels_tried --all            # all of them: minutes each
python -m swizzle_benchmarks.kernels_tried                  # write the page from the rows of earlier runs

The packages have to be on ``PYTHONPATH``, unpacked (``pip download --no-deps``, then unzip) or installed; what no
package holds is found as `declarations` say.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from importlib import metadata
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROWS = HERE / "rows.json"
PAGE = HERE.parents[1] / "docs" / "kernels-tried.md"
LIMIT_S = 600.0
SWIZZLE = "q = num_pids // 8\npid = (pid % 8) * q + pid // 8\n"  # each XCD a run of neighbours
PAGE_TEXT = """# Published kernels tried

Kernels that nobody of this project wrote, each loaded from its untouched file with no torch and no GPU, as
`benchmarks/kernels_tried/declarations` launches it. *Captured* means that sampled workgroups, interpreted, touch the
same lines; *rewritten* that a swizzle was put into the file and both ran side by side with equal outputs.
Written by `python -m swizzle_benchmarks.kernels_tried`; do not edit. The rows so far were noted from the output of
`capture` and `rewrite`, run one by one on a loaded machine of two cores: the seconds are upper bounds.

{captured} of {total} are captured. {rewritten} of the {tried} that were tried are rewritten and verified.

| kernel | package | captured | seconds | rewritten |
| --- | --- | --- | --- | --- |
{rows}

Seconds are of the whole capture command (start, compile for two architectures, capture, comparison) on 2 cores that
other work shared, so an upper bound. *Not tried* was not run to its end.
"""


def main() -> None:
    """Try the kernels that are named, and write the page."""
    rows: dict[str, dict[str, Any]] = json.loads(ROWS.read_text(encoding="utf-8"))
    names = list(rows) if "--all" in sys.argv else [name for name in sys.argv[1:] if not name.startswith("-")]
    for name in names:
        rows[name] |= tried(name, rows[name]["package"])
        ROWS.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
        print(name, rows[name])
    PAGE.write_text(page(rows), encoding="utf-8")


def tried(name: str, package: str) -> dict[str, Any]:
    """What capture and rewrite of one kernel give."""
    module, _, variable = name.partition(":")
    declaration = f"{HERE / 'declarations' / module}.py:{variable}"
    found: dict[str, Any] = {}
    with contextlib.suppress(metadata.PackageNotFoundError):
        found["version"] = metadata.version(package)
    with tempfile.TemporaryDirectory() as folder:
        swizzle = Path(folder, "swizzle.txt")
        swizzle.write_text(SWIZZLE, encoding="utf-8")
        began = time.monotonic()
        document, why = _answer("capture", declaration, "-o", str(Path(folder, "one.trace.npz")))
        found["seconds"] = round(time.monotonic() - began)
        found["captured"] = f"{document['workgroups']} workgroups" if document else f"no: {why}"
        if document:
            out = str(Path(folder, "out.py"))
            document, why = _answer("rewrite", declaration, "--swizzle", str(swizzle), "-o", out)
            runs = [case for case in document["check"]["cases"] if case["whole"]] if document else []
            found["rewritten"] = f"yes, equal at {len(runs)} small sizes" if document else f"no: {why}"
    return found


def _answer(*words: str) -> tuple[dict[str, Any], str]:
    """Document of a command, or the last line of why there is none."""
    command = [sys.executable, "-c", "from swizzle_sim.cli import main; main()", *words, "--json"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=LIMIT_S, check=False, env=dict(os.environ)
        )
    except subprocess.TimeoutExpired:
        return {}, f"not done in {LIMIT_S:g} s"
    if done.returncode == 0:
        return json.loads(done.stdout), ""
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    return {}, lines[-1].removeprefix("swizzle-sim: ") if lines else "no words"


def page(rows: dict[str, dict[str, Any]]) -> str:
    """Text of the page."""
    rewritten = [row["rewritten"] for row in rows.values() if row["rewritten"]]
    lines = [
        f"| `{row['function']}` | {row['package']} {row['version']} | {row['captured']} | {row['seconds'] or ''} | "
        f"{row['rewritten'] or 'not tried'} |"
        for row in rows.values()
    ]
    return PAGE_TEXT.format(
        captured=sum(not row["captured"].startswith("no") for row in rows.values()),
        total=len(rows),
        rewritten=sum(one.startswith("yes") for one in rewritten),
        tried=len(rewritten),
        rows="\n".join(lines),
    )


if __name__ == "__main__":
    main()
