"""What each workgroup touches, in program order, in cache lines."""
