"""From a kernel and an order to a score: replays, issue model, sharing, access patterns."""
