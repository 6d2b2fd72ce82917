"""Declarations of kernels of other people's packages: shapes and constants, no code of theirs."""
