"""A kernel as a template: its order, configuration, loop and hints searched together, each lever named."""
