"""The trace file: arrays of a trace and a manifest in one npz, read without Triton, refused if damaged."""

from __future__ import annotations

import hashlib
import io
import json
import math
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import numpy as np

from swizzle_sim.base.atomic_write import write_whole
from swizzle_sim.base.release import version
from swizzle_sim.base.rules import ANY, TEXT, TRUTH, Rule, check, integer
from swizzle_sim.language.grid import Grid
from swizzle_sim.workload.kernels import MAX_SIZE
from xcd_model import Resources, Tensor, Trace
from xcd_model.errors import CaptureError, RunError, SizeError, TraceError
from xcd_model.files import at_once
from xcd_model.trace.trace import WAVE_COLUMNS

FORMAT = "swizzle-sim-trace"
FORMAT_VERSION = 2
ARRAYS = ("start", "base", "template", "rel_start", "rel", "sectors", "is_write", "tensor", "wave_requests")
TOLD = ("waves",)  # arrays that files written before them lack
SUFFIX = ".trace.npz"
MAX_UNPACKED_BYTES = 16 << 30  # a file of a few kB may unpack to any size


def write_trace(path: Path, trace: Trace, manifest: Mapping[str, Any]) -> None:
    """Write a trace file, whole or not at all."""
    arrays = {name: getattr(trace, name) for name in (*ARRAYS, *TOLD)}
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
    """Trace and manifest of a file."""
    try:
        with open(path, "rb", opener=at_once) as file:
            text, arrays = _stored(path, file)
        manifest = json.loads(text)
        trace = Trace(line_bytes=manifest["line_bytes"], tensors=_tensors(manifest["tensors"]), **arrays)
        check_manifest(manifest, trace.n_workgroups)
        return trace, manifest
    except CaptureError:
        raise
    except OSError as error:
        raise CaptureError(f"{path}: cannot be read ({error.strerror or error})", code="trace-file") from None
    except (ValueError, EOFError, RecursionError):  # without numpy's words, which advise to load pickles
        raise CaptureError(f"{path}: no trace file, or damaged; capture again", code="trace-file") from None
    except Exception as error:  # zlib.error has no public base
        raise CaptureError(f"{path}: no trace file, or damaged ({error}); capture again", code="trace-file") from None


def _stored(path: Path, file: BinaryIO) -> tuple[bytes, dict[str, np.ndarray]]:
    """Manifest's text and arrays of a file, whose size unpacked, version and digest are right."""
    with zipfile.ZipFile(file) as packed:
        unpacked_bytes = sum(member.file_size for member in packed.infolist())
    if unpacked_bytes > MAX_UNPACKED_BYTES:
        raise TraceError(f"{unpacked_bytes} B unpacked: at most {MAX_UNPACKED_BYTES}")
    file.seek(0)
    with np.load(file, allow_pickle=False) as stored:
        if "manifest" not in stored:
            raise CaptureError(f"{path}: an npz, but no trace file: it has no manifest", code="trace-file")
        text = stored["manifest"].tobytes()
        _check_version(path, json.loads(text))
        arrays = {name: stored[name] for name in (*ARRAYS, *(told for told in TOLD if told in stored))}
        if stored["digest"].tobytes() != digest_of(text, arrays):
            raise CaptureError(f"{path}: damaged: its digest does not match; capture again", code="trace-file")
    if "waves" in arrays and arrays["waves"].ndim == 2:  # older files lack its last columns, which zeros leave unknown
        lacking = max(0, WAVE_COLUMNS - arrays["waves"].shape[1])
        arrays["waves"] = np.pad(arrays["waves"], [(0, 0), (0, lacking)])
    return text, arrays


def _tensors(listed: Any) -> tuple[Tensor, ...]:
    """Tensors of a manifest; `Trace` checks what they hold."""
    if not isinstance(listed, list) or not all(isinstance(one, list) and len(one) == 4 for one in listed) or not listed:
        raise TraceError("tensors: a list of name, first line, lines and bytes each")
    return tuple(Tensor(*one) for one in listed)


def _check_version(path: Path, manifest: Mapping[str, Any]) -> None:
    if not isinstance(manifest, Mapping) or manifest.get("format") != FORMAT:
        raise CaptureError(f"{path}: an npz of another kind, no trace file", code="trace-file")
    if manifest.get("format_version") != FORMAT_VERSION:
        raise CaptureError(
            f"{path}: format version {str(manifest.get('format_version'))[:20]}, written by swizzle-sim "
            f"{str(manifest.get('version'))[:20]}; this "
            f"is {version()} and reads version {FORMAT_VERSION}: capture again",
            code="trace-file",
        )


def digest_of(text: bytes, arrays: Mapping[str, np.ndarray]) -> bytes:
    """SHA-256 of a manifest's text and a trace's arrays."""
    found = hashlib.sha256(text)
    for name in (*ARRAYS, *(told for told in TOLD if told in arrays)):
        array = np.ascontiguousarray(arrays[name])
        found.update(f"{name} {array.dtype.str} {array.shape}".encode())
        found.update(array.data)
    return found.digest()


# The manifest of a trace file, which somebody else may have written: every value that a command reads is checked.
#
# A checksum says that a file is whole, not who wrote it; so a wrong type or a figure that cannot be is found here and
# not by the compiled replays.

# Least and most of the figures of a compiled kernel: far beyond any GPU's, and far from the ends of an int64.
RESOURCES = {
    **{"threads": (1, 1 << 20), "vgprs": (0, 1 << 20), "lds_bytes": (0, 1 << 30)},
    **{"instructions_in_flight": (1, 1 << 20), "code_bytes": (0, 1 << 40), "burst_loads": (0, 1 << 10)},
    **dict.fromkeys(("loads_per_step", "remap_instructions", "step_instructions", "vector_loads"), (0, 1 << 20)),
    **dict.fromkeys(("step_cycles", "ahead_cycles", "burst_cycles", "busy_cycles", "vector_cycles"), (0, 1 << 30)),
}
LATER = tuple(RESOURCES)[4:]  # not in files of earlier versions


SIZES = {ANY: integer(-MAX_SIZE - 1, MAX_SIZE)}
GRID = {
    "grid": Rule("a list of sides", lambda sides: isinstance(sides, list)),
    "tiles": Rule("two counts or null", lambda tiles: tiles is None or (isinstance(tiles, list) and len(tiles) == 2)),
}
FLOPS = Rule("a number of at least 0", lambda value: type(value) in (int, float) and 0 <= value < math.inf)
FACTS = {
    **dict.fromkeys(("name", "summary", "sharing", "dtype"), TEXT), "problem": SIZES, "tiles": GRID["tiles"],
    "flops": FLOPS, "issued_flops?": FLOPS,
    "programs": Rule("a count or null", lambda value: value is None or (type(value) is int and 1 <= value <= MAX_SIZE)),
    "claims?": {"pools": integer(1, MAX_SIZE), "local": integer(0, MAX_SIZE), "steals?": TRUTH},
}  # fmt: skip
MANIFEST = {
    **dict.fromkeys(("source", "how", "triton"), TEXT), "launch": {}, "facts": FACTS, "grid": GRID["grid"],
    "grids": [{**GRID, "sizes": SIZES, "values?": SIZES}], "resources": {"gfx942": {}, ANY: {}},
}  # fmt: skip
FIGURES = {"source": TEXT, "after_products?": TRUTH, "past_l1?": TRUTH}
FIGURES |= {key + "?" * (key in LATER): integer(*bounds) for key, bounds in RESOURCES.items()}


def check_manifest(manifest: Mapping[str, Any], n_workgroups: int) -> None:
    """Hold a manifest against what a kernel is made of."""
    check(manifest, MANIFEST, "", _refuse)
    grid = _grid({**manifest["facts"], **manifest}, "grid")
    if grid.num_pids != n_workgroups:
        _refuse("grid", str(grid), f"the trace has {n_workgroups} workgroups")
    for at in manifest["grids"]:
        _grid(at, "grids")
    for arch, found in manifest["resources"].items():
        check(found, {"error": TEXT} if "error" in found else FIGURES, f"resources.{arch}", _refuse)
        if extra := sorted(set(found) - set(Resources.__dataclass_fields__) - {"error"}):
            _refuse(f"resources.{arch}", extra, "unknown")


def _grid(described: Mapping[str, Any], key: str) -> Grid:
    try:
        return Grid.from_dict(described)
    except SizeError as error:
        raise TraceError(f"{key}: {error}") from None


def _refuse(key: str, value: Any, rule: str) -> NoReturn:
    raise TraceError(f"{key} = {repr(value)[:60]}: {rule}")
