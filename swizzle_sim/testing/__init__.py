"""For people who have a swizzle in their own repository: prove it in their own tests.

``assert_bijective`` takes a Python function, a text of the language, or a ``@triton.jit`` function in a file;
``assert_hit_rate`` holds a kernel's simulated L2 hit rate above a floor. A pytest plugin and
``swizzle-sim check`` build on the same. The names are imported on first use: pytest loads this package in every run.
"""

from xcd_model.lazy import attached

__getattr__, __dir__, __all__ = attached(__name__, __file__)
