"""Strategies of the search: each proposes candidates to `swizzle_sim.search.loop.run`, and is told their attempts."""
