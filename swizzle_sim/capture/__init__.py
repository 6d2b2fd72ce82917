"""Kernels to traces, and to what they occupy, each in a process of its own; and the user's declaration."""

from swizzle_sim.capture.declare import Cuda
from swizzle_sim.capture.declare import KernelDeclaration as Kernel
from swizzle_sim.workload.launch import Array, Launch

__all__ = ["Array", "Cuda", "Kernel", "Launch"]
