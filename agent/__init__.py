"""The proposer that reads and writes: an LLM through DSPy. This room is empty until the agent moves in."""
