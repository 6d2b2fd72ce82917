"""Bundles and surroundings not to be trusted, on a node with a GPU: is each refused, and does the rest go on?

    python -m benchmarks.tests.node_bundles BUNDLE [--json FILE] [--jobs N]     of transpose, with two candidates

Each attack works on a copy of the bundle and runs its ``confirm.py``. Where it changes a file it also mends the
manifest, as somebody would who wants to be believed; where it does not, the digests must notice.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from swizzle_sim.hardware.node.manifest import identity

LIMIT_S = 15  # of a pass; a process that checks and times has six times as long
STORE = "    tl.store(y_ptr"
Surroundings = Mapping[str, str]  # environment variables
Expected = Callable[[int, dict[str, Any], str], bool]  # exit status, result.json, what was printed -> as it should be


def rewritten(bundle: Path, name: str, before: str, after: str, *, signed: bool = True) -> None:
    """Change a file of a bundle, and its digest too."""
    text = (bundle / name).read_text(encoding="utf-8")
    if before not in text:
        raise SystemExit(f"{name}: no {before!r} in it: is this a bundle of transpose?")
    (bundle / name).write_text(text.replace(before, after, 1), encoding="utf-8")
    if signed:
        manifest = json.loads((bundle / "manifest.json").read_text(encoding="utf-8"))
        manifest["files"][name] = hashlib.sha256((bundle / name).read_bytes()).hexdigest()
        manifest["bundle"] = identity(manifest)
        (bundle / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")


def tampered(bundle: Path, _: Path) -> Surroundings:
    """A line more in a candidate, the digest as it was."""
    rewritten(bundle, "candidate_1.py", STORE, f"    # more\n{STORE}", signed=False)
    return {}


def extra_file(bundle: Path, _: Path) -> Surroundings:
    """A ``torch.py`` beside ``confirm.py``."""
    (bundle / "torch.py").write_text("raise SystemExit('ran what it should not')\n", encoding="utf-8")
    return {}


def leftovers(bundle: Path, _: Path) -> Surroundings:
    """What a queue, a file system, a crash and an editor leave, and scripts with a line more."""
    for name in (".nfs000001", "core", "gpucore.123", ".candidate_1.py.swp", "slurm-7.out"):
        (bundle / name).write_text("left\n", encoding="utf-8")
    for name in ("job.sbatch", "run.sh", "README.md"):
        with (bundle / name).open("a", encoding="utf-8") as file:
            file.write("#SBATCH --account=me\n")
    return {}


def linked_folder(bundle: Path, aside: Path) -> Surroundings:
    """``node/`` as a link to a folder that can change later."""
    (bundle / "node").rename(aside / "node")
    (bundle / "node").symlink_to(aside / "node")
    return {}


def other_node(_: Path, aside: Path) -> Surroundings:
    """A package ``node`` on PYTHONPATH."""
    (aside / "node").mkdir()
    (aside / "node" / "__init__.py").write_text("raise SystemExit('ran what it should not')\n", encoding="utf-8")
    return {"PYTHONPATH": os.pathsep.join(filter(None, (str(aside), os.environ.get("PYTHONPATH"))))}


def site_customised(_: Path, aside: Path) -> Surroundings:
    """A ``sitecustomize`` on PYTHONPATH, which Python itself runs."""
    (aside / "sitecustomize.py").write_text("import builtins\nbuiltins.changed = True\n", encoding="utf-8")
    return {"PYTHONPATH": os.pathsep.join(filter(None, (str(aside), os.environ.get("PYTHONPATH"))))}


def hangs(bundle: Path, _: Path) -> Surroundings:
    """A candidate whose workgroups wait for a value that nobody writes."""
    loop = "    while tl.atomic_add(y_ptr, 0.0) != 12345.678:\n        pass\n"
    rewritten(bundle, "candidate_1.py", STORE, loop + STORE)
    return {}


def writes_far_outside(bundle: Path, _: Path) -> Surroundings:
    """A candidate that stores where no memory is: the GPU's context is lost."""
    rewritten(bundle, "candidate_1.py", STORE, f"    tl.store(x_ptr + (M.to(tl.int64) << 38), 1.0)\n{STORE}")
    return {}


def writes_just_outside(bundle: Path, _: Path) -> Surroundings:
    """A candidate that stores one element past its output, with an output that is right."""
    rewritten(bundle, "candidate_1.py", STORE, f"    tl.store(y_ptr + M * N + 1, 1.0)\n{STORE}")
    return {}


def profiler_dies(_: Path, aside: Path) -> Surroundings:
    """An ``ncu`` that kills itself."""
    return _profiler(aside, 'kill -9 "$$"')


def profiler_hangs(_: Path, aside: Path) -> Surroundings:
    """An ``ncu`` that never ends."""
    return _profiler(aside, "sleep 100000")


def _profiler(aside: Path, words: str) -> Surroundings:
    program = aside / "ncu"
    program.write_text(
        '#!/bin/sh\ncase "$*" in *--version*) echo "NVIDIA (R) Nsight Compute Command Line Profiler"; '
        f'echo "Version 2025.1.0.0"; exit 0;; esac\n{words}\n',
        encoding="utf-8",
    )
    program.chmod(0o755)
    return {"PATH": f"{aside}{os.pathsep}{os.environ['PATH']}"}


def refused(words: str) -> Expected:
    """Exit status 2 and these words, and nothing was run."""
    return lambda code, _, said: code == 2 and words in said and "ran what it should not" not in said


def confirmed(code: int, result: dict[str, Any], said: str) -> bool:
    """All is as without the attack."""
    return code == 0 and "ran what it should not" not in said and result.get("complete") is True


def noted_path(code: int, result: dict[str, Any], said: str) -> bool:
    """All ran, and the result says what Python was started with."""
    return confirmed(code, result, said) and bool(result["machine"]["started_with"]["PYTHONPATH"])


def _checks(result: dict[str, Any], name: str) -> str:
    return result.get("candidates", {}).get(name, {}).get("check_before", {}).get("how", "")


def costs_itself_only(code: int, result: dict[str, Any], _: str) -> bool:
    """Candidate 1 is no bitwise equal, without times; the others have theirs."""
    entries = result.get("candidates", {})
    others = [entries.get(name, {}) for name in ("original", "candidate_2")]
    return (
        code == 1
        and _checks(result, "candidate_1") in ("failed", "differs", "hung", "")
        and "time_us" not in entries["candidate_1"]
        and all("time_us" in one and one["check_before"]["how"] == "bitwise" for one in others)
    )


def timed_without_counts(code: int, result: dict[str, Any], _: str) -> bool:
    """All are checked and timed, none is counted, and that is no success."""
    entries = result.get("candidates", {}).values()
    return code == 1 and all("time_us" in one and not one.get("counters") for one in entries)


ATTACKS: dict[Callable[[Path, Path], Surroundings], Expected] = {
    tampered: refused("candidate_1.py was changed"),
    extra_file: refused("not in the bundle's manifest"),
    leftovers: confirmed,
    linked_folder: refused("is a link, or lies in one"),
    other_node: confirmed,
    site_customised: noted_path,
    hangs: costs_itself_only,
    writes_far_outside: costs_itself_only,
    writes_just_outside: costs_itself_only,
    profiler_dies: timed_without_counts,
    profiler_hangs: timed_without_counts,
}


def tried(bundle: Path, attack: Callable[[Path, Path], Surroundings]) -> dict[str, Any]:
    """Make one attack on a copy of a bundle: what came of it."""
    with tempfile.TemporaryDirectory() as scratch:
        copy, aside = Path(scratch) / bundle.name, Path(scratch) / "aside"
        shutil.copytree(bundle, copy)
        aside.mkdir()
        surroundings = attack(copy, aside)
        begun = time.monotonic()
        words = [sys.executable, str(copy / "confirm.py"), "--samples", "50", "--limit", str(LIMIT_S)]
        done = subprocess.run(
            words, capture_output=True, text=True, check=False, env={**os.environ, **surroundings}, cwd=scratch
        )
        path = copy / "result.json"
        result = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    said = done.stdout + done.stderr
    return {
        "attack": attack.__name__,
        "expected": ATTACKS[attack](done.returncode, result, said),
        "status": done.returncode,
        "seconds": round(time.monotonic() - begun, 1),
        "checks": {name: _checks(result, name) for name in result.get("candidates", {})},
        "notes": result.get("notes", []),
        "said": done.stderr.strip().splitlines()[-3:],
    }


def main() -> int:
    """Try every attack; status 1 if one ends as it should not."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("bundle", type=Path)
    parser.add_argument("--json", type=Path, help="file to write what came of each into, as it comes")
    parser.add_argument("--jobs", type=int, default=1, help="attacks at a time")
    given = parser.parse_args()
    found = []
    with ThreadPoolExecutor(given.jobs) as pool:
        for done in as_completed([pool.submit(tried, given.bundle.resolve(), attack) for attack in ATTACKS]):
            found.append(done.result())
            print(f"{'as it should be' if found[-1]['expected'] else 'NOT AS IT SHOULD BE'}: {found[-1]}", flush=True)
            if given.json:
                given.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    return 0 if all(one["expected"] for one in found) else 1


if __name__ == "__main__":
    sys.exit(main())
