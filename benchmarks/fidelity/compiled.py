"""A kernel as Triton compiles it for a GPU that need not be there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

TARGETS = {"gfx942": ("hip", "gfx942", 64), "sm_90": ("cuda", 90, 32)}  # backend, architecture, lanes of a wave
WAVES = 4


def compiled(kernel: Any, arguments: Mapping[str, str], constants: Mapping[str, int], arch: str) -> Any:
    """Compile a kernel of four waves; needs Triton, with nothing interpreted.

    Parameters
    ----------
    kernel : triton.JITFunction
    arguments : mapping of str to str
        Triton's types of the first parameters, pointers and sizes that are multiples of 16.
    constants : mapping of str to int
        Values of the ``constexpr`` that follow.
    arch : str
        One of `TARGETS`.
    """
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    n = len(arguments)
    source = ASTSource(
        fn=kernel,
        signature={**arguments, **dict.fromkeys(constants, "constexpr")},
        constexprs={(n + i,): value for i, value in enumerate(constants.values())},
        attrs={(i,): [["tt.divisibility", 16]] for i in range(n)},
    )
    return triton.compile(source, target=GPUTarget(*TARGETS[arch]), options={"num_warps": WAVES})
