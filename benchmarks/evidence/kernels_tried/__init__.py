"""Published kernels, declared and tried: ``pages/kernels-tried.md`` is what came of it."""
