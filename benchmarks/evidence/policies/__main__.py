"""``python -m swizzle_benchmarks.evidence.policies FOLDER [--only NAME] [--jobs N]``: policies over many sizes each.

Every policy is the one that `swizzle-sim policy` makes; its files lie in FOLDER, and what the command said, in
``NAME.json``, where it is not there yet. ``found.json`` here keeps the figures, from which ``pages/policies.md`` is
written. A kernel of a package is fetched as `kernels_tried` fetches it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from ..kernels_tried.sources import HERE, KERNELS, SOURCES
from .page import ASKED, FOUND, PAGE, PER_SIZE, Asked, page


def made(asked: Asked, folder: Path, jobs: int) -> dict[str, Any]:
    """Policy of a kernel as the command says it, gone on with where it was stopped."""
    said = folder / f"{asked.name}.json"
    if not said.exists():
        environment = dict(os.environ)
        if asked.package:
            module = asked.kernel.partition(".py:")[0]  # declares kernels of several packages
            needed = {one["source"] for name, one in KERNELS.items() if name.partition(":")[0] == module}
            for name in needed:
                SOURCES[name].fetch(folder)
            environment["PYTHONPATH"] = os.pathsep.join(str(SOURCES[name].place(folder)) for name in needed)
        place = folder / asked.name
        words = [*asked.words(str(HERE / "declarations")), "--jobs", str(jobs), "--json"]
        words += ["--resume" if (place / "sweep.sqlite").exists() else "-o", str(place)]
        command = [sys.executable, "-m", "swizzle_sim", *words]
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
        said.write_bytes(done.stdout)
    return json.loads(said.read_text())


def kept(document: dict[str, Any]) -> dict[str, Any]:
    """Figures of a policy that the page needs, each size as a list of `PER_SIZE`."""
    sizes = [
        [round(x, 4) if isinstance(x := one[name], float) else x for name in PER_SIZE] for one in document["sizes"]
    ]
    orders = [{key: one[key] for key in ("name", "where", "covers", "mean_regret_pct")} for one in document["orders"]]
    return {
        **{k: document[k] for k in ("kernel", "gpu", "rule", "held_out_regret_pct", "unproved", "left_out")},
        "orders": orders,
        "sizes": sizes,
    }


def main() -> None:
    """Make the policies, keep their figures, write the page."""
    ask = argparse.ArgumentParser(description=str(__doc__))
    ask.add_argument("folder", type=Path)
    ask.add_argument("--only", action="append", choices=[one.name for one in ASKED])
    ask.add_argument("--jobs", type=int, default=-1)
    given = ask.parse_args()
    folder = given.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    for asked in ASKED:
        if given.only and asked.name not in given.only:
            continue
        known = json.loads(FOUND.read_text()) if FOUND.exists() else {}
        known[asked.name] = kept(made(asked, folder, given.jobs))
        lines = [f'"{name}": {json.dumps(one)}' for name, one in sorted(known.items())]
        FOUND.write_text("{\n" + ",\n".join(lines) + "\n}\n")
        print(f"{asked.name}: {len(known[asked.name]['sizes'])} sizes", flush=True)
    PAGE.write_text(page(json.loads(FOUND.read_text())))


if __name__ == "__main__":
    main()
