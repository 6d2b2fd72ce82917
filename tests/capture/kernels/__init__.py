"""Triton kernels that were not written for capture: the tutorials' algorithms anew, and hard cases."""
