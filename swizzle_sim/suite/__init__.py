"""The suite as a whole: facts of each kernel, and every kernel's baseline, best family and bound in one table."""

from swizzle_sim.suite.facts import Facts, facts_of
from swizzle_sim.suite.result import Result, Suite
from swizzle_sim.suite.run import PAPER, score_suite
from swizzle_sim.suite.shortlist import shortlist
from swizzle_sim.suite.table import suite_csv, suite_markdown

__all__ = [
    "PAPER",
    "Facts",
    "Result",
    "Suite",
    "facts_of",
    "score_suite",
    "shortlist",
    "suite_csv",
    "suite_markdown",
]
