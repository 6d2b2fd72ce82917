"""Search over templates, ceilings, sweeps and hypothetical GPUs: everything that tries many candidates or machines."""
