"""Policies of published kernels over many sizes."""
