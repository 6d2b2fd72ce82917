"""Slices the texts of a kernel and writes what was run; a process of its own, with Triton and the user's files."""

from __future__ import annotations

import json
from pathlib import Path

from swizzle_sim.capture.sliced_text import dotted_package, package_files, texts
from xcd_model.errors import CaptureError


def main(question: str, answer: str) -> None:
    """Answer a request with ``texts``, ``path``, ``function`` and ``arch``."""
    request = json.loads(Path(question).read_text(encoding="utf-8"))
    path, arch = Path(request["path"]).resolve(), request["arch"]
    try:
        reply = {
            "texts": texts(request["texts"], path, request["function"], arch),
            "package": package_files(arch, path, [Path(one).resolve() for one in request["texts"]]),
            "dotted": dotted_package(path),
        }
    except CaptureError as error:
        reply = {"error": str(error)}
    Path(answer).write_text(json.dumps(reply), encoding="utf-8")
