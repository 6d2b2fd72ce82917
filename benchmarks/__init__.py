"""Workloads and the scripts that measure this project; nothing imports it but by name through the registry."""
