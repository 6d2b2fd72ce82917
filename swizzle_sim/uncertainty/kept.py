"""Replays of draws, kept on disk as they come: an interrupted study goes on, a longer one starts from a shorter."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from swizzle_sim.scoring import Scorer
from xcd_model.numba_setup import source_digest

Figures = Mapping[str, float | None]
HERE = Path(__file__).parent


class Kept:
    """Figures of one order under many settings.

    Parameters
    ----------
    scorer : Scorer
    order : (num_pids,) int array

    Notes
    -----
    A line of JSON a draw, in the user's cache, in a file named by everything that the figures depend on: the code of
    the model, the trace, the GPU, the replay and the order. A folder that cannot be written is done without.
    """

    def __init__(self, scorer: Scorer, order: np.ndarray):
        self.path = folder() / f"{_digest(scorer, order)}.jsonl"
        self.known: dict[str, Figures] = {}
        try:
            text = self.path.read_text(encoding="utf-8")
        except OSError:
            return
        for line in text.splitlines():
            try:
                entry = json.loads(line)
                self.known[entry["settings"]] = entry["figures"]
            except (ValueError, KeyError, TypeError):
                continue  # the line that was being written when the power went

    def get(self, settings: Mapping[str, Any]) -> Figures | None:
        """Figures under these settings, if they were replayed before."""
        return self.known.get(_key(settings))

    def put(self, settings: Mapping[str, Any], figures: Figures) -> None:
        """Keep the figures of one draw."""
        self.known[_key(settings)] = figures
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"settings": _key(settings), "figures": dict(figures)}) + "\n")
        except OSError:
            return


def folder() -> Path:
    """Where draws are kept."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "swizzle-sim" / "uncertainty"


def _key(settings: Mapping[str, Any]) -> str:
    return json.dumps(dict(settings), sort_keys=True)


def _digest(scorer: Scorer, order: np.ndarray) -> str:
    kernel, trace = scorer.kernel, scorer.trace
    digest = hashlib.sha256(_code().encode())
    for array in (trace.start, trace.base, trace.template, trace.rel_start, trace.rel, trace.sectors, trace.is_write):
        digest.update(np.ascontiguousarray(array).tobytes())
    digest.update(np.ascontiguousarray(trace.wave_requests).tobytes())
    digest.update(np.ascontiguousarray(order, np.int64).tobytes())
    gpu = {key: value for key, value in scorer.gpu.as_dict().items() if key not in ("facts", "name", "title")}
    about = (gpu, scorer.replay, scorer.seed, scorer.jitter_ns, scorer.occupancy, kernel.programs, kernel.launches)
    digest.update(
        json.dumps([*about, kernel.dtype, kernel.issued_flops, kernel.vector_ops, repr(kernel.resources)]).encode()
    )
    return digest.hexdigest()[:32]


@cache
def _code() -> str:
    mine = [*sorted(HERE.rglob("*.py")), HERE.parent / "scoring.py"]
    return source_digest() + hashlib.sha256(b"\0".join(path.read_bytes() for path in mine)).hexdigest()
