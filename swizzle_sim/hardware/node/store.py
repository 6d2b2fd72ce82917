"""``result.json``, written anew after every step, so that whatever ends the flow leaves what was found before."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any


class Store:
    """A document on disk.

    Parameters
    ----------
    path : Path
    document : dict
        JSON-ready.
    """

    def __init__(self, path: Path, document: dict[str, Any]):
        self.path, self.document = path, document
        self.save()

    def save(self) -> None:
        """Write it whole, beside and renamed."""
        draft = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        with open(draft, "w", encoding="utf-8") as file:
            json.dump(self.document, file, indent=1, allow_nan=False)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, self.path)

    def candidate(self, name: str) -> dict[str, Any]:
        """Entry of one candidate, to be filled."""
        return self.document["candidates"].setdefault(name, {})


def lines_of(path: Path) -> Iterator[dict[str, Any]]:
    """JSON documents of a file, one a line; a last line cut short is left out."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return
    for line in text.splitlines():
        try:
            yield json.loads(line)
        except ValueError:
            continue
