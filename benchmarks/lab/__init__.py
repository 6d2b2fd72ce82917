"""Tools that measure a GPU: `python -m benchmarks.lab` lists them."""
