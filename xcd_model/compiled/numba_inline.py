"""How compiled functions are inlined: by LLVM, in the kernel that calls them, after numba has typed each of them once.

    @inlined                 LLVM copies it into each caller: nearly all of a kernel
    @called                  LLVM calls it, unless it finds it short: what is seldom run, or stands in many places
    @njit(inline="always")   numba copies it and types each copy: what Python calls too

With machine code of its own and LLVM's optimization at each level of calls, the first timed replay takes five times as
long, with numba's copies of copies more yet, and gigabytes. So what is declared here has no code of its own: Python
cannot call it, and only the module of the kernel that it ends up in is optimized.

That rests on private parts of numba (`numba_pipeline`). Where they are gone or were not tried, each function is
compiled by itself: slowly, to the same counts and times.
"""

from __future__ import annotations

import functools
from typing import Any

from xcd_model.compiled.numba_setup import KernelCompiler, known, njit

_options = functools.partial(njit, error_model="numpy", **known(_nrt=False, no_cpython_wrapper=True))
if KernelCompiler:
    from xcd_model.compiled.numba_pipeline import Uncompiler

    _options = functools.partial(_options, pipeline_class=Uncompiler)
inlined: Any = _options(**known(forceinline=True))
called: Any = _options(**known(forceinline=False))


def inlined_twin(function: Any) -> Any:
    """The same function for kernels, of one that Python calls too."""
    return inlined(getattr(function, "py_func", function))  # without py_func where NUMBA_DISABLE_JIT is set
