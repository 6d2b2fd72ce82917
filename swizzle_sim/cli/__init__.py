"""The command ``swizzle-sim``: thin, and quick to start, since each command imports what it needs."""

from swizzle_sim.cli.app import main

__all__ = ["main"]
