"""Sensitivity of a score to unpublished hardware constants: their ranges, draws of them, and the spread of a score."""

from swizzle_sim.uncertainty.study import Span, Uncertainty, uncertainty

__all__ = ["Span", "Uncertainty", "uncertainty"]
