"""What serves speed only: without it every count is the same."""
