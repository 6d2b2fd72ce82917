"""The simulator against its peers."""
