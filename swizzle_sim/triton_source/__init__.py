"""Facts of a file with Triton kernels, read from its text and never run.

One reader for `check`, capture and the rewrite: which functions are kernels, what their parameters are, where they read
program ids, and what they compute from these.

    file ── source_file ──▶ SourceFile ─┬─ parameters  ▶ pointers, strides, sizes, constexprs   (init-kernel)
              (aliases)                 ├─ prologue    ▶ tile of a program id, as language text (check)
                                        └─ definitions ▶ local names in terms of parameters     (rewrite)
"""

from swizzle_sim.triton_source.source_file import ProgramId, SourceFile, parse_source, read_source

__all__ = ["ProgramId", "SourceFile", "parse_source", "read_source"]
