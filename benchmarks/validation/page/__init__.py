"""The text, tables and pictures of docs/fidelity.md."""
