"""Profilers' own files, told apart by what is in them and read into one form."""

from swizzle_sim.hardware.readers.read import Profile, read_profile

__all__ = ["Profile", "read_profile"]
