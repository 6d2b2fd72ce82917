"""What follows from counts and traces: time, energy, bounds, sampled misses."""
