"""Remaps of public code and of the paper, re-written, with the launches on which they are right."""
