"""A kernel as a template: its order and configuration searched together, each lever named."""
