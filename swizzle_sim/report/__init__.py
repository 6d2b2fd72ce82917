"""The report of a run: ``report.html``, its pictures, and the best swizzle as text, Triton and HIP.

Names are imported on first use: a notebook's printers are in this room too, and ``import swizzle_sim`` must stay light.
"""

from xcd_model.lazy import attached

__getattr__, __dir__, __all__ = attached(__name__, __file__)
