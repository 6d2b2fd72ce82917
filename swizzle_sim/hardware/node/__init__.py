"""What runs on the node, copied into every bundle: standard library only; in the worker PyTorch and Triton."""
