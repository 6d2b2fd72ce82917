"""Everything that tries candidates: one judge, one loop, strategies, their history and ranking."""
