"""`Facts`: the figures of a kernel that need no order of its workgroups, kept on disk between commands.

Building a trace and its bound takes up to some seconds for the largest kernels. What was worked out is kept in the
user's cache, under a digest of the sizes, the GPU and the source of kernel and model: new code asks again.
"""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import json
import os
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import xcd_model
from swizzle_sim.kernels import Kernel, kernel_names
from swizzle_sim.scoring import Scorer
from swizzle_sim.sharing import distinct_lines
from xcd_model import Gpu

FORMAT = 1  # raise when the figures change their meaning
MOST_KEPT = 500  # files


@dataclass(frozen=True, kw_only=True)
class Facts:
    """Figures of one kernel on one GPU.

    Parameters
    ----------
    workgroups_per_cu : int
        That fit at once.
    instructions, line_touches : int
        Tensor instructions of all workgroups, and the cache lines they touch, repetitions counted.
    distinct_lines : int
        The same lines, each counted once.
    footprint_bytes : int
        Size of all tensors.
    bound_l2_hit_rate : float
        0 to 1; what no balanced bijection exceeds.
    """

    workgroups_per_cu: int
    instructions: int
    line_touches: int
    distinct_lines: int
    footprint_bytes: int
    bound_l2_hit_rate: float

    @property
    def ideal_reuse(self) -> float:
        """Touches a line, on average: how often each fetched line could be used by one cache that holds everything."""
        return self.line_touches / self.distinct_lines


def facts_of(kernel: Kernel, gpu: Gpu) -> Facts:
    """Figures of a kernel, from the cache where they are known.

    Raises
    ------
    TraceError, ReplayError
        If the kernel does not fit the model or the GPU.
    """
    place = _place(kernel, gpu) if kernel.name in kernel_names() else None
    if place is not None and (known := _read(place)):
        return known
    found = work_out(Scorer(kernel, gpu))
    if place is not None:
        _keep(place, found)
    return found


def work_out(scorer: Scorer) -> Facts:
    """Figures of a scorer's kernel on its GPU."""
    trace = scorer.plan.trace
    return Facts(
        workgroups_per_cu=scorer.occupancy,
        instructions=trace.n_instructions,
        line_touches=trace.n_touches,
        distinct_lines=distinct_lines(trace),
        footprint_bytes=sum(t.size_bytes for t in trace.tensors),
        bound_l2_hit_rate=scorer.bound.l2_hit_rate,
    )


def _place(kernel: Kernel, gpu: Gpu) -> Path | None:
    """File for a kernel's figures; None where its source cannot be told apart from a later one."""
    source = inspect.getsourcefile(kernel.build_trace)
    if source is None:
        return None
    digest = hashlib.sha256()
    about: dict[str, Any] = {"format": FORMAT, "problem": dict(kernel.problem), "gpu": gpu.as_dict()}
    about |= {"grid": kernel.grid.launch, "resources": asdict(kernel.resources), "programs": kernel.programs}
    digest.update(json.dumps(about, sort_keys=True, default=str).encode())
    for folder in (Path(source).parent, Path(xcd_model.__file__).parent, Path(__file__).parent):
        digest.update(_source_digest(folder))
    return cache_folder() / f"{kernel.name}-{digest.hexdigest()[:16]}.json"


@lru_cache
def _source_digest(folder: Path) -> bytes:
    digest = hashlib.sha256()
    for path in sorted(folder.glob("*.py")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.digest()


def cache_folder() -> Path:
    """Where figures are kept."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "swizzle-sim" / "facts"


def is_known(kernel: Kernel, gpu: Gpu) -> bool:
    """Whether `facts_of` would answer at once."""
    place = _place(kernel, gpu)
    return place is not None and _read(place) is not None


def _read(place: Path) -> Facts | None:
    try:
        return Facts(**json.loads(place.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):  # not there, or cut short
        return None


def _keep(place: Path, found: Facts) -> None:
    with contextlib.suppress(OSError):  # a cache that cannot be written is only slow
        place.parent.mkdir(parents=True, exist_ok=True)
        kept = sorted(place.parent.glob("*.json"), key=lambda path: path.stat().st_mtime)
        for old in kept[: max(0, len(kept) - MOST_KEPT + 1)]:
            old.unlink(missing_ok=True)
        new = place.with_suffix(f".{os.getpid()}")
        new.write_text(json.dumps(asdict(found)), encoding="utf-8")
        new.replace(place)
