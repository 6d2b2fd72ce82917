"""The machine: GPUs as data, traces of workgroups, dispatch and caches. Arrays in, counts out.

The names below are imported on first use, so that lists of GPUs and of runs start without numba.
"""

from xcd_model.lazy import attached

__getattr__, __dir__, __all__ = attached(__name__, __file__)
