"""Operations of a kernel's matrix products, ``tl.dot`` and ``tl.dot_scaled``, by the type that they run in.

Counted as the kernel is captured: multiplications and additions of whole tiles, masked items included. What a kernel
multiplies otherwise (``tl.sum(a * b)``) is not counted.
"""

from __future__ import annotations

import math
from collections import Counter
from functools import wraps
from inspect import signature
from typing import Any

OF_FORMATS = {"e4m3": "fp8", "e5m2": "fp8", "e2m1": "fp8"}  # of ``tl.dot_scaled``; no GPU here has a rate of 4 bits
PACKED = "e2m1"  # two items in a byte


class Products:
    """Counts what Triton's interpreter multiplies.

    Parameters
    ----------
    semantic : InterpreterSemantic
        Whose products are counted from now on.
    """

    def __init__(self, semantic: Any):
        self._flops: Counter[str] = Counter()
        dot, dot_scaled = semantic.dot, semantic.dot_scaled

        @wraps(dot)
        def counted(lhs: Any, rhs: Any, *rest: Any) -> Any:
            found = dot(lhs, rhs, *rest)
            self._add(found, int(lhs.shape[-1]), lhs.dtype.name)
            return found

        names = signature(dot_scaled)

        @wraps(dot_scaled)
        def counted_scaled(*given: Any) -> Any:
            found, of = dot_scaled(*given), names.bind(*given).arguments
            lhs, kind = of["lhs"], of["lhs_format"]
            depth = int(lhs.shape[-1]) * (2 if kind == PACKED and of["lhs_k_pack"] else 1)
            self._add(found, depth, OF_FORMATS.get(kind, kind))
            return found

        semantic.dot, semantic.dot_scaled = counted, counted_scaled

    def _add(self, product: Any, depth: int, kind: str) -> None:
        kind = "fp8" if kind.startswith("fp8") else kind.removeprefix("u")
        self._flops[kind] += 2 * math.prod(map(int, product.shape)) * depth

    def taken(self) -> Counter[str]:
        """Operations of one workgroup by type, since they were last taken."""
        taken, self._flops = self._flops, Counter()
        return taken
