"""The text, tables and pictures of the fidelity page."""
