"""How kernels are compiled: where their code is kept, what LLVM inlines, what is taken by reference; scrambling."""
