"""A GPU as data: frozen descriptions read from TOML, every number with its source and status."""
