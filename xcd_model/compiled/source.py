"""Digest of a package's source: what was compiled or worked out from it is as old as it."""

from __future__ import annotations

import hashlib
from pathlib import Path


def source_digest(package: Path) -> str:
    """Sixteen hexadecimal digits that change with any source file of a package, at any depth."""
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        digest.update(path.relative_to(package).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]
