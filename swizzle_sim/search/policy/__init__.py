"""Policies: which order of workgroups a kernel takes at which size, by a rule that people can read."""
