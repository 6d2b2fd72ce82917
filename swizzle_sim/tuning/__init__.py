"""A kernel as a template: its order, configuration, loop, hints and layout searched together, each lever named."""
