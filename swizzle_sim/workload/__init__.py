"""A kernel as data: its launches, its work, and its price in registers."""
