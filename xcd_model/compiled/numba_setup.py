"""Where compiled kernels are kept: a folder named by the source they were compiled from.

numba looks only at the file of a kernel to see whether its compiled form is stale, not at the kernels that it calls
from other files. After an update that could mean old code and wrong counts in silence. So the folder carries a digest
of every source file of `xcd_model`; this module tells numba to use it, and kernels take their ``njit`` from here.
"""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numba
from numba.core import config

from xcd_model.compiled.source import source_digest

PACKAGE = Path(__file__).parents[1]
PREFIX = "kernels-"


def cache_folder(package: Path = PACKAGE) -> Path:
    """Folder for compiled kernels: in the package, else in the user's cache, else a new temporary one.

    The temporary one is new each time, so compiling is slow each time: nobody else can have put code there.
    """
    name = PREFIX + source_digest(package)
    user = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "swizzle-sim"
    for place in (package / "__pycache__", user):
        with contextlib.suppress(OSError):
            (place / name).mkdir(parents=True, exist_ok=True)
            if os.access(place / name, os.W_OK):
                _forget_others(place, name)
                return place / name
    return Path(tempfile.mkdtemp(prefix="swizzle-sim-"))


def _forget_others(place: Path, name: str) -> None:
    """Remove kernels of other versions of the source."""
    for other in place.glob(PREFIX + "*"):
        if other.name != name:
            shutil.rmtree(other, ignore_errors=True)


if not os.environ.get("NUMBA_CACHE_DIR"):  # a choice of the user's goes first
    setattr(config, "CACHE_DIR", str(cache_folder()))  # noqa: B010  (numba makes its settings at run time)

# Versions of numba whose private parts were tried. With another, or where one of the classes is gone, kernels are
# compiled without them: slowly the first time, and to the same counts.
OLDEST, NEWEST = (0, 60), (0, 68)
KernelCompiler: Any = None
if OLDEST <= numba.version_info.short <= NEWEST:
    with contextlib.suppress(ImportError, AttributeError):
        from xcd_model.compiled.numba_pipeline import Kept, KernelCompiler


def known(**options: Any) -> dict[str, Any]:
    """Options that are not in numba's documentation, of which this numba may not know each: it refuses others."""
    every = getattr(numba.core.options, "DefaultOptions", None)
    return {name: value for name, value in options.items() if hasattr(every, name)}


def njit(*given: Any, cache: bool = False, **options: Any) -> Any:
    """Compiler of a function, whose folder is set here; without a wrapper for C, which nobody calls."""

    def compiled(function: Any) -> Any:
        made = numba.njit(cache=cache, **known(no_cfunc_wrapper=True), **options)(function)
        if cache and KernelCompiler and made is not function:
            made._cache = Kept(function, counted=options.get("_nrt", True))
        return made

    return compiled(*given) if given else compiled


# Cached, without the interpreter's lock, and without numba's reference counting, which makes a replay three to ten
# times slower: it counts references to every array of a tuple that is passed on. In return nothing inside may allocate.
uncounted = functools.partial(njit, cache=True, nogil=True, error_model="numpy", **known(_nrt=False))
if KernelCompiler:
    uncounted = functools.partial(uncounted, pipeline_class=KernelCompiler)
