"""The code of an NVIDIA kernel, read and timed: `sass` for the compiling process, `waves` for what it hands back."""
