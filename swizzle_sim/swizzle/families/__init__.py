"""The published families of swizzles, as texts of the language with parameters.

A *placement* chooses which XCD gets which ids, an *order* (with `curves`) walks the tile grid; a spec such as
``contiguous+group_m(size=8)`` joins them.
"""

from swizzle_sim.swizzle.families.condition import condition_of, holds
from swizzle_sim.swizzle.families.nouns import Family, Parameter
from swizzle_sim.swizzle.families.spec import FAMILIES, family, is_spec, parse_spec, spec_of
from swizzle_sim.swizzle.families.table import families_table

__all__ = [
    "FAMILIES",
    "Family",
    "Parameter",
    "condition_of",
    "families_table",
    "family",
    "holds",
    "is_spec",
    "parse_spec",
    "spec_of",
]
