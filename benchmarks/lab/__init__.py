"""Tools that measure a GPU: `python -m swizzle_benchmarks.lab` lists them."""
