"""Triton's interpreter replaces the language's functions at each call of a helper; once a launch is enough.

It looks through the whole language for what is not replaced yet, which takes a quarter of the time of small programs.
"""

from __future__ import annotations

from typing import Any


def patch_once_a_launch(interpreter: Any) -> None:
    """Let helpers that a running kernel calls find the language as the kernel left it."""
    patch = interpreter._patch_lang
    patched: set[int] = set()  # globals of the functions that have run since the launch began

    def once(function: Any) -> Any:
        if id(function.__globals__) in patched:
            return interpreter._LangPatchScope()
        launches = not patched
        scope = patch(function)
        patched.add(id(function.__globals__))
        if launches:
            restore = scope.restore

            def end() -> None:
                patched.clear()
                restore()

            scope.restore = end
        return scope

    interpreter._patch_lang = once
