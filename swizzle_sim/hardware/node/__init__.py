"""What runs beside the GPU: copied into every bundle; standard library, and in the worker PyTorch and Triton."""
