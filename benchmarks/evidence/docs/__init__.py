"""Scripts that write the generated parts of the documentation."""
