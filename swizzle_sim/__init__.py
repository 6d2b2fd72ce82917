"""The experiment: kernels, swizzles, their scores, and the search for better ones.

The names below are the Python API; they are imported on first use, so that ``import swizzle_sim`` stays light.
"""

import sys

from xcd_model.lazy import attached

__getattr__, __dir__, __all__ = attached(__name__, __file__)

if (_shell := getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()) is not None:  # in a notebook
    from swizzle_sim.report.display.notebook import register

    register(_shell)
