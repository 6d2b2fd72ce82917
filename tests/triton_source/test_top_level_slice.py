"""Are the statements that a function needs kept, and no others?"""

import ast

from swizzle_sim.triton_source.top_level_slice import TopLevelSlice

TEXT = """
import os, sys as system
from a import b, c as d
items = [1]
items.append(b)
table = {}
table["x"] = d
if system.platform:
    side = items
else:
    side = os
print("host code")

def plain(x=side):
    return helper(x, table)

def helper(x, y):
    items = x
    return items

class Holder(plain):
    pass

items = "bound again further down"
for late in range(3):
    last = late
"""


def kept(*names, line=None):
    tree = ast.parse(TEXT)
    found = TopLevelSlice(tree, lambda function: function.decorator_list)
    body, _ = found.of(names) if line is None else found.of(names, line)
    return [ast.unparse(stmt).split("\n")[0] for stmt in body]


def test_what_a_name_needs_is_kept_in_text_order():
    assert kept("last") == ["for late in range(3):"]
    assert kept("table") == ["from a import c as d", "table = {}", "table['x'] = d"]
    assert kept("side") == [
        "import os, sys as system",
        "from a import b",
        "items = [1]",
        "items.append(b)",
        "if system.platform:",
    ]
    assert kept("Holder")[-3:] == ["def plain(x=side):", "def helper(x, y):", "class Holder(plain):"]


def test_what_is_bound_further_down_counts_only_for_what_runs_later():
    assert "items = 'bound again further down'" not in kept("side")
    assert kept("items", line=9) == ["from a import b", "items = [1]", "items.append(b)"]
    assert kept("items")[-1] == "items = 'bound again further down'"
