"""The line on stderr that says how far a capture is."""

from __future__ import annotations

from swizzle_sim.cli.progress import ProgressLine


class CaptureProgress:
    """Context that is called as ``progress(kernel, done, total)``."""

    def __init__(self) -> None:
        self.line = ProgressLine()

    def __enter__(self) -> CaptureProgress:
        self.line.__enter__()
        return self

    def __call__(self, name: str, done: int, total: int) -> None:
        """Say how far it is."""
        self.line(f"capturing {name}: {done} of {total} workgroups")

    def __exit__(self, *exc_info) -> None:
        self.line.__exit__(*exc_info)
