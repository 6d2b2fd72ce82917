"""The trace file: arrays of a trace and a manifest in one npz, read without Triton, refused if damaged."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from swizzle_sim.atomic_write import write_whole
from swizzle_sim.release import version
from xcd_model import Tensor, Trace
from xcd_model.errors import CaptureError, RunError, TraceError

FORMAT = "swizzle-sim-trace"
FORMAT_VERSION = 2
ARRAYS = ("start", "base", "template", "rel_start", "rel", "sectors", "is_write", "tensor", "wave_requests")
SUFFIX = ".trace.npz"


def write_trace(path: Path, trace: Trace, manifest: Mapping[str, Any]) -> None:
    """Write a trace file, whole or not at all.

    Parameters
    ----------
    path : Path
    trace : Trace
    manifest : mapping
        What else there is to say, plain data for JSON.

    Raises
    ------
    CaptureError
        If the file cannot be written.
    """
    arrays = {name: getattr(trace, name) for name in ARRAYS}
    text = json.dumps(
        {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "version": version(),
            "line_bytes": trace.line_bytes,
            "tensors": [[t.name, t.base_line, t.n_lines, t.size_bytes] for t in trace.tensors],
            **manifest,
        }
    ).encode()
    file = io.BytesIO()
    digest = np.frombuffer(digest_of(text, arrays), np.uint8)
    np.savez_compressed(file, manifest=np.frombuffer(text, np.uint8), digest=digest, **arrays)
    try:
        write_whole(path, file.getvalue())
    except RunError as error:
        raise CaptureError(str(error), code="trace-file") from None


def read_trace(path: Path) -> tuple[Trace, dict[str, Any]]:
    """Trace and manifest of a file.

    Raises
    ------
    CaptureError
        If there is no such file, it is no trace file, of another format version, or damaged.
    """
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as stored:
            if "manifest" not in stored:
                raise CaptureError(f"{path}: an npz, but no trace file: it has no manifest", code="trace-file")
            text = stored["manifest"].tobytes()
            manifest = json.loads(text)
            _check_version(path, manifest)
            arrays = {name: stored[name] for name in ARRAYS}
            if stored["digest"].tobytes() != digest_of(text, arrays):
                raise CaptureError(f"{path}: damaged: its digest does not match; capture again", code="trace-file")
        tensors = tuple(Tensor(*values) for values in manifest["tensors"])
        return Trace(line_bytes=manifest["line_bytes"], tensors=tensors, **arrays), manifest
    except OSError as error:
        raise CaptureError(f"{path}: cannot be read ({error.strerror or error})", code="trace-file") from None
    except (ValueError, EOFError):  # without numpy's words, which advise to load pickles
        raise CaptureError(f"{path}: no trace file, or damaged; capture again", code="trace-file") from None
    except (KeyError, TypeError, zipfile.BadZipFile, TraceError) as error:
        raise CaptureError(f"{path}: no trace file, or damaged ({error}); capture again", code="trace-file") from None
    except Exception as error:  # zlib.error has no public base
        if isinstance(error, CaptureError):
            raise
        raise CaptureError(f"{path}: damaged ({error}); capture again", code="trace-file") from None


def _check_version(path: Path, manifest: Mapping[str, Any]) -> None:
    if manifest.get("format") != FORMAT:
        raise CaptureError(f"{path}: an npz of another kind, no trace file", code="trace-file")
    if manifest["format_version"] != FORMAT_VERSION:
        raise CaptureError(
            f"{path}: format version {manifest['format_version']}, written by swizzle-sim {manifest['version']}; this "
            f"is {version()} and reads version {FORMAT_VERSION}: capture again",
            code="trace-file",
        )


def digest_of(text: bytes, arrays: Mapping[str, np.ndarray]) -> bytes:
    """SHA-256 of a manifest's text and a trace's arrays."""
    found = hashlib.sha256(text)
    for name in ARRAYS:
        array = np.ascontiguousarray(arrays[name])
        found.update(f"{name} {array.dtype.str} {array.shape}".encode())
        found.update(array.data)
    return found.digest()
