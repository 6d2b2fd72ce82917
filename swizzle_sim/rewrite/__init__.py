"""A swizzle put into a user's kernel: program ids remapped, comments and layout unchanged, the outcome checked."""

from swizzle_sim.rewrite.check import Case, Checked, check_rewritten
from swizzle_sim.rewrite.kernel import AT, Rewritten, check_target, rewrite_kernel, rewrite_workload, write_rewritten

__all__ = [
    "AT",
    "Case",
    "Checked",
    "Rewritten",
    "check_rewritten",
    "check_target",
    "rewrite_kernel",
    "rewrite_workload",
    "write_rewritten",
]
