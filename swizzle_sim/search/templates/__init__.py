"""Templates: swizzles of the closed language with declared parameters, their ranges and constraints."""

from swizzle_sim.search.templates.read import load_templates, read_template, read_templates
from swizzle_sim.search.templates.space import TemplateSpace, family_template, family_templates, published_values
from swizzle_sim.search.templates.template import ParameterRange, Template, read_range

__all__ = [
    "ParameterRange",
    "Template",
    "TemplateSpace",
    "family_template",
    "family_templates",
    "load_templates",
    "published_values",
    "read_range",
    "read_template",
    "read_templates",
]
