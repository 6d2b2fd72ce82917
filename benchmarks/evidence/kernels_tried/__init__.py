"""Published kernels, declared and tried: ``docs/kernels-tried.md`` is what came of it."""
