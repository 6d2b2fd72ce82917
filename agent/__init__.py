"""The llm proposer: language models through DSPy write swizzles, and the simulator judges them.

The names below are the Python API; they are imported on first use, so that importing the package needs no DSPy.
"""

from xcd_model.lazy import attached

__getattr__, __dir__, __all__ = attached(__name__, __file__)
