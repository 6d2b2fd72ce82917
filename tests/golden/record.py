"""Write the pinned JSON anew, where a change is meant to change it: ``python -m tests.golden.record [NAME ...]``."""

import json
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.golden.commands import commands

DATA = Path(__file__).parent / "data"
VARIES = ("run", "seconds", "report", "schema_version")  # paths and times, and what says nothing of a figure


def settled(document):
    """A document without what differs from run to run; of a run's hundreds of orders, without their balance."""
    return _without(document, (*VARIES, "balance") if "run" in document else VARIES)


def _without(value, keys):
    if isinstance(value, dict):
        return {key: _without(one, keys) for key, one in value.items() if key not in keys}
    return [_without(one, keys) for one in value] if isinstance(value, list) else value


def text_of(document):
    """What a file holds: one key a line, lists of numbers on one."""
    return json.dumps(settled(document), indent=1) + "\n"


def _record(name, words):
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", "from swizzle_sim.cli import main; main()", *words]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        return f"{name}: {done.stderr.strip()[-400:]}"
    (DATA / f"{name}.json").write_text(text_of(json.loads(done.stdout)))
    return None


def main(names):
    """Run the commands, two at a time, and write what they print."""
    wanted = {name: words for name, words in commands().items() if not names or name in names}
    DATA.mkdir(exist_ok=True)
    with ThreadPoolExecutor(2) as pool:
        failed = [line for line in pool.map(_record, wanted, wanted.values()) if line]
    print("\n".join(failed) or f"{len(wanted)} files")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
