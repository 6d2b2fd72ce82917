"""Where workgroups part: a branch or a trip count on which they differ ends the run and starts one for each part."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType
from typing import NoReturn

import numpy as np

from swizzle_sim.capture.values import Known, Unknown, Value, force
from xcd_model.errors import CaptureError

HERE = str(Path(__file__).parent)


class Fork(BaseException):
    """Workgroups do not agree; passes through the kernel and through Triton, which both catch ``Exception``.

    Parameters
    ----------
    parts : list of (n_part,) int64
        Positions of the workgroups that agree with each other, in the run that ends.
    """

    def __init__(self, parts: list[np.ndarray]):
        super().__init__("workgroups part here")
        self.parts = parts


def agree(column) -> int:
    """The integer on which all workgroups agree; raises Fork where they do not."""
    if not isinstance(column, np.ndarray):
        return int(column)
    values, inverse = np.unique(column, return_inverse=True)
    if values.size == 1:
        return int(values[0])
    raise Fork([np.flatnonzero(inverse == i) for i in range(values.size)])


def source_line() -> str:
    """``file:line`` of the innermost frame that is neither Triton's nor ours."""
    triton = str(Path(getattr(sys.modules.get("triton"), "__file__", None) or HERE).parent)
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith((HERE, triton, "<")):
            return f"{Path(name).name}:{frame.f_lineno}"
        frame = frame.f_back
    return "the kernel"


def known(value: Value, what: str) -> Known:
    """A value that an address, a mask or a branch needs.

    Raises
    ------
    CaptureError
        If the replay does not follow it; names the line that asks and the line it comes from.
    """
    found = force(value)
    if isinstance(found, Known):
        return found
    reason = found.reason if isinstance(found, Unknown) else "a value the replay does not follow"
    refuse(f"{what} depends on {reason}")


def refuse(problem: str) -> NoReturn:
    """Refuse the kernel at the current line."""
    raise CaptureError(f"{source_line()}: {problem}", code="not-followed")
