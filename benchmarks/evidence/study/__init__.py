"""Studies of language models: the runs of the paper's figures, and a protocol that compares models."""
