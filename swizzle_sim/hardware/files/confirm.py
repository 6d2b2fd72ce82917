"""Confirm this bundle's candidates on the GPU of this machine: python confirm.py --help.

Needs Python's standard library, PyTorch and Triton; counts with rocprofv3 (AMD) or ncu (NVIDIA) where they are there.
Runs only files whose SHA-256 is in manifest.json, starts programs without a shell, and fetches nothing.
"""

import hashlib
import json
import sys
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent


def first_check():
    """Refuse before anything else of the bundle is loaded."""
    files = json.loads((HERE / "manifest.json").read_text(encoding="utf-8"))["files"]
    for name, wanted in files.items():
        path = HERE / name
        if path.resolve() != path:  # a link, or in a linked folder: what it names may change after this check
            refuse(f"{name} is a link, or lies in one: remake the bundle")
        if hashlib.sha256(path.read_bytes()).hexdigest() != wanted:
            refuse(f"{name} was changed after the bundle was made")


def refuse(why):
    """End with the exit status of misuse."""
    print(f"confirm: {why}", file=sys.stderr)
    sys.exit(2)


if __name__ == "__main__":
    try:
        first_check()
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        refuse(f"the bundle is damaged ({error})")
    # the flow starts this file anew for what touches the GPU: its folder, not the current one, is where modules are
    if sys.argv[1:2] == ["worker"]:
        from node.worker import main  # type: ignore[import-not-found]  # lies beside this file in a bundle
    elif sys.argv[1:2] == ["launcher"]:
        from node.launcher import main  # type: ignore[import-not-found]
    else:
        from node.flow import main  # type: ignore[import-not-found]
    sys.exit(main(sys.argv[1:], HERE))
