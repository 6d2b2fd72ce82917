"""The published families of swizzles, as texts of the language with parameters.

A *placement* decides which XCD gets which ids, an *order* walks the tile grid; a spec such as
``contiguous+group_m(size=8)`` composes them.
"""

from swizzle_sim.language.families.family import Family, Parameter
from swizzle_sim.language.families.spec import (
    FAMILIES,
    condition_of,
    families_table,
    family,
    holds,
    is_spec,
    names_of,
    parse_spec,
    spec_of,
)

__all__ = [
    "FAMILIES",
    "Family",
    "Parameter",
    "condition_of",
    "families_table",
    "family",
    "holds",
    "is_spec",
    "names_of",
    "parse_spec",
    "spec_of",
]
