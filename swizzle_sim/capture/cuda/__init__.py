"""Kernels of CUDA and HIP to traces, with no GPU: compiled for the CPU, run in a process of their own."""
