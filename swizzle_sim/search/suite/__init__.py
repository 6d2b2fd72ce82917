"""The suite as a whole: facts of each kernel, and launch order, best family and bound of every kernel in one table."""

from swizzle_sim.search.suite.facts import Facts, facts_of
from swizzle_sim.search.suite.run import PAPER, Result, Suite, score_suite, suite_markdown

__all__ = [
    "PAPER",
    "Facts",
    "Result",
    "Suite",
    "facts_of",
    "score_suite",
    "suite_markdown",
]
