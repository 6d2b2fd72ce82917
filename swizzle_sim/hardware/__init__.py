"""From finalists to measurements: bundles for a node with the GPU, profilers' files read back, agreement."""
