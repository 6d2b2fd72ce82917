"""Templates: swizzles of the closed language with declared parameters, their ranges and constraints."""

from swizzle_sim.templates.from_families import family_template, family_templates
from swizzle_sim.templates.ranges import Range, read_range
from swizzle_sim.templates.read import load_templates, read_template, read_templates
from swizzle_sim.templates.space import Space
from swizzle_sim.templates.template import Template

__all__ = [
    "Range",
    "Space",
    "Template",
    "family_template",
    "family_templates",
    "load_templates",
    "read_range",
    "read_template",
    "read_templates",
]
