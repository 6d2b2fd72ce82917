"""The version that runs and documents note."""

from __future__ import annotations

from importlib import metadata


def version() -> str:
    """Version of the installed distribution."""
    return metadata.version("swizzle-sim")
