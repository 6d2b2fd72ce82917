"""Triton kernels that were not written for capture: two of the tutorials' anew, and hard cases."""
