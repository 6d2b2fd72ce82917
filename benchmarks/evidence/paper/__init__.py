"""What the paper printed and measured, beside what the model says."""
