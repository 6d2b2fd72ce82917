"""Templates: swizzles of the closed language with declared parameters, their ranges and constraints."""

from swizzle_sim.search.templates.space import TemplateSpace, family_template, family_templates, published_values
from swizzle_sim.search.templates.template import ParameterRange, Template, load_templates, read_template

__all__ = [
    "ParameterRange",
    "Template",
    "TemplateSpace",
    "family_template",
    "family_templates",
    "load_templates",
    "published_values",
    "read_template",
]
