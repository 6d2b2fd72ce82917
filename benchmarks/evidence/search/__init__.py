"""How searches compare with the same number of evaluations."""
