"""The fixtures of the agent's tests: a small kernel, a GPU, and runs that end soon."""

from tests.agent.conftest import beyond_the_bound, few_families, small
from tests.conftest import mi300x

__all__ = ["beyond_the_bound", "few_families", "mi300x", "small"]
