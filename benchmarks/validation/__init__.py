"""Model against measurement."""
