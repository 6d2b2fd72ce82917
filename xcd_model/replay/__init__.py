"""A trace through dispatch and caches, in lockstep or timed: counts out."""
