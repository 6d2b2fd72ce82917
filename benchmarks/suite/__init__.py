"""The kernel suite: one file a kernel, with its Triton source in a file of its own beside it."""
