"""The closed language of PID remappings: parse, check, evaluate, verify.

``Swizzle.parse(text)`` returns a candidate; ``swizzle.verify(grid, num_xcds)`` proves or disproves it.
"""

from swizzle_sim.language.emit import emit_text, emit_triton
from swizzle_sim.language.emit_hip import emit_hip
from swizzle_sim.language.families import (
    FAMILIES,
    Family,
    Parameter,
    condition_of,
    family,
    holds,
    is_spec,
    parse_spec,
    spec_of,
)
from swizzle_sim.language.grid import Grid
from swizzle_sim.language.ir import Form
from swizzle_sim.language.parse import parse_form
from swizzle_sim.language.swizzle import Swizzle, is_text, verify
from swizzle_sim.language.variables import arguments
from swizzle_sim.language.verdict import Counterexample, Verdict

__all__ = [
    "FAMILIES",
    "Counterexample",
    "Family",
    "Form",
    "Grid",
    "Parameter",
    "Swizzle",
    "Verdict",
    "arguments",
    "condition_of",
    "emit_hip",
    "emit_text",
    "emit_triton",
    "family",
    "holds",
    "is_spec",
    "is_text",
    "parse_form",
    "parse_spec",
    "spec_of",
    "verify",
]
