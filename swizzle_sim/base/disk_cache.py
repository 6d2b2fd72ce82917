"""Results that are slow to work out, in the user's cache folder: one diskcache store (SQLite) for each kind.

Values are JSON documents, never pickles: reading a cache executes nothing. A store that cannot be opened, read or
written is done without, so a full disk or a read-only home costs time and no result.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import sqlite3
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from xcd_model.compiled.source import source_digest

FULL_BYTES = 1 << 30  # of one store; the least recently stored go first
_BROKEN = (OSError, sqlite3.Error, ValueError, zlib.error)


def cache_home() -> Path:
    """Folder of everything that swizzle-sim caches: ``$XDG_CACHE_HOME/swizzle-sim``, or ``~/.cache/swizzle-sim``."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "swizzle-sim"


def key_of(*about: Any, arrays: Iterable[np.ndarray] = (), code: Iterable[Path] = ()) -> str:
    """Digest of all that a result depends on: plain data, arrays, and the source of the packages that work it out."""
    versions = [_digest_once(package) for package in code]
    found = hashlib.sha256(json.dumps([about, versions], sort_keys=True, default=str).encode())
    for array in arrays:
        found.update(f"{array.dtype.str}{array.shape}".encode() + np.ascontiguousarray(array).tobytes())
    return found.hexdigest()[:32]


_digest_once = functools.lru_cache(source_digest)


class DiskCache:
    """JSON documents by key, shared by all processes of a user and kept between them."""

    def __init__(self, kind: str, folder: Path | None = None):
        self.folder = folder or cache_home() / kind
        self._store = _open(self.folder)

    def get(self, key: str) -> Any:
        """Document stored under a key, or None."""
        with contextlib.suppress(*_BROKEN):
            return self._store.get(key, retry=True) if self._store is not None else None
        return None

    def put(self, key: str, document: Any) -> None:
        """Store a JSON document; one stored before under this key is replaced."""
        with contextlib.suppress(*_BROKEN):
            if self._store is not None:
                self._store.set(key, document, retry=True)


@functools.lru_cache(maxsize=16)
def _open(folder: Path) -> Any:
    from diskcache import Cache

    try:
        return Cache(str(folder), disk=_json_disk(), size_limit=FULL_BYTES, eviction_policy="least-recently-stored")
    except _BROKEN:
        return None


@functools.cache
def _json_disk() -> Any:
    """`diskcache.JSONDisk` that refuses the pickles which another program may have put into the store."""
    from diskcache import JSONDisk
    from diskcache.core import MODE_PICKLE

    class OnlyJson(JSONDisk):
        def fetch(self, mode, filename, value, read):
            if mode == MODE_PICKLE:
                raise ValueError(f"{filename or 'an entry'} is a pickle, and only JSON is read")
            return super().fetch(mode, filename, value, read)

    return OnlyJson
