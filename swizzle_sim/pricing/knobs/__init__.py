"""Knobs beside the order of workgroups: the direction of a kernel's main loop, and loads that stream through the L2."""

from swizzle_sim.pricing.knobs.emit import emit_knobs
from swizzle_sim.pricing.knobs.knobs import DEFAULT, Knobs, periods

__all__ = ["DEFAULT", "Knobs", "emit_knobs", "periods"]
