"""A policy as files: one text of the language that decides in the kernel, and a function for whoever launches it.

policy.txt        the rule and its orders as one candidate: score, check, rewrite and bundle take it
policy.py         the rule for a launcher, and for triton.heuristics; needs no package
policy_triton.py  policy.txt as a Triton helper        policy.hpp  both in C++17
policy.json       rule, orders with their proofs, figures at every size; test_policy.py holds policy.py to it
policy.png        the regions over two of the sizes
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from textwrap import indent
from typing import Any

import numpy as np

from swizzle_sim.base.atomic_write import check_folder, write_whole
from swizzle_sim.language import Swizzle, emit_hip, emit_triton
from swizzle_sim.language.parse import parse_form
from swizzle_sim.search.policy.rule import Branch, Node, Policy
from xcd_model.errors import SearchError

INDENT = "    "
MEAN = ("mean_regret_pct", "behind_at")  # keys of `Policy.mean_regret`
# What gives tiles from an id, by their names and the kind of the launch: x is fastest.
_TO_TILES = {
    ("pid_m pid_n", "tiles"): "pid_m = pid // num_pid_n\npid_n = pid % num_pid_n",
    ("pid_m pid_n", "plane"): "pid_m = pid % num_pid_m\npid_n = pid // num_pid_m",
    ("pid_x pid_y", "plane"): "pid_x = pid % num_pid_x\npid_y = pid // num_pid_x",
    ("pid_x pid_y pid_z", "box"): "pid_x = pid % num_pid_x\npid_y = pid // num_pid_x % num_pid_y\n"
    "pid_z = pid // num_pid_x // num_pid_y",
}
_PYTHON = '''\
"""{title}.

Emitted by swizzle-sim policy: {kind}. {claim}
"""

ORDERS = {orders}
NAMES = {names}  # that `order_of` reads: sizes, and counts of tiles as the kernel's grid has them


def order_of({signature}):
    """Place in `ORDERS` of the order that a launch of these sizes takes; 0 is the launch order."""
{body}


def heuristic(counts=None):
    """Value for ``triton.heuristics({{"ORDER": heuristic(counts)}})``.

    ``counts(args)`` gives what `NAMES` has that is no argument of the kernel, such as ``num_pids``, as a dict.
    """

    def order(args):
        given = {{**args, **(counts(args) if counts else {{}})}}
        return order_of(**{{name: given[name] for name in NAMES}})

    return order
'''
_TEST = '''\
"""policy.py gives every size of policy.json its order."""

import json
import re
from pathlib import Path

from policy import NAMES, ORDERS, order_of


def test_policy():
    found = json.loads(Path(__file__).with_name("policy.json").read_text(encoding="utf-8"))
    assert list(ORDERS) == [one["name"] for one in found["orders"]]
    assert found["sizes"]
    for size in found["sizes"]:
        assert order_of(**{name: size["values"][name] for name in NAMES}) == size["order"], size["label"]
'''


def rule_text(node: Node, leaf: Mapping[int, str]) -> str:
    """Rule as statements of the language, each order as its text."""
    if not isinstance(node, Branch):
        return leaf[node.order]
    then, other = (indent(rule_text(one, leaf), INDENT) for one in (node.then, node.other))
    return f"if {node.condition}:\n{then}\nelse:\n{other}"


def numbers(policy: Policy, gives: str) -> str:
    """Rule that gives the number of the order: that of the launch order where the condition of a proof fails."""
    return rule_text(policy.rule, {i: f"{gives} {i}{_unless(policy, i)}" for i in range(len(policy.orders))})


def _unless(policy: Policy, order: int) -> str:
    where = re.sub(r"\bnum_xcds\b", str(policy.gpu.xcds), policy.orders[order].where)
    return f" if {where} else 0" if where else ""


def kernel_text(policy: Policy) -> str:
    """Whole policy as one candidate: the rule decides in the kernel, and each order computes the tile.

    A condition reads sizes and counts, the same for all workgroups of a launch: so each launch takes one branch, and
    the proof of its order is that of the text.
    """
    forms = {i: Swizzle.parse(one.source).form for i, one in enumerate(policy.orders) if one.source}
    results = {" ".join(form.results) for form in forms.values()} - {"pid"}
    if len(results) > 1:
        raise SearchError(f"orders give {' and '.join(sorted(results))}: write them with the same names", code="policy")
    tiles = _TO_TILES[results.pop(), policy.cases[0].kind] if results else ""
    leaf = {0: tiles or "pid = pid"}
    for i, form in forms.items():
        order = policy.orders[i]
        text = order.source.rstrip("\n") + (f"\n{tiles}" if form.results == ("pid",) and tiles else "")
        leaf[i] = (
            f"if {order.where}:\n{indent(text, INDENT)}\nelse:\n{indent(leaf[0], INDENT)}" if order.where else text
        )
    return rule_text(policy.rule, leaf) + "\n"


def read_names(policy: Policy) -> list[str]:
    """Names that decide the number of the order."""
    found = parse_form(numbers(policy, "pid =")).inputs
    return [name for name in found if name != "pid"]


def python_text(policy: Policy) -> str:
    """Source of ``policy.py``."""
    names = read_names(policy)
    return _PYTHON.format(
        title=f"Orders of the workgroups of {policy.kernel} on {policy.gpu.title}",
        kind=f"simulated, {policy.replay} replay, at {len(policy.cases)} sizes",
        claim=claim(policy),
        orders="(" + "".join(f"\n    {one.name!r}," for one in policy.orders) + "\n)",
        names=repr(tuple(names)),
        signature=", ".join(["*", *names]) if names else "",
        body=indent(numbers(policy, "return"), INDENT),
    )


def claim(policy: Policy) -> str:
    """What the rule loses, in a few sentences."""
    at = max(range(len(policy.cases)), key=lambda i: policy.regrets[i])
    mine, launched = (_mean(*policy.mean_regret(order)) for order in (None, 0))
    said = [
        f"It loses {mine} of the best proved order over all calls, at worst {policy.regrets[at]:.2f} % "
        f"({policy.cases[at].label}); the launch order alone loses {launched}."
    ]
    if policy.behind_all != tuple(policy.regrets):
        mean = np.average(policy.behind_all, weights=[case.calls for case in policy.cases])
        said.append(f"Orders without a proof are {mean:.2f} % ahead, at most {max(policy.behind_all):.2f} %.")
    if policy.held_out is not None:
        said.append(f"Made without a third of the sizes, it loses {policy.held_out:.2f} % there.")
    return " ".join(said)


def _mean(percent: float, behind: int) -> str:
    sizes = f" (and at {behind} sizes goes behind, by uneven ends or lost occupancy)" if behind else ""
    return f"{percent:.2f} %{sizes}"


def document(policy: Policy) -> dict[str, Any]:
    """JSON-ready."""
    cases = zip(
        policy.cases, policy.chosen, policy.regret, policy.matters, policy.measure, policy.behind_all, strict=True
    )
    return {
        "kernel": policy.kernel,
        "gpu": policy.gpu.name,
        "replay": policy.replay,
        "kind": "simulated",
        "allowed_pct": policy.allowed,
        "rule": [{"where": where, "order": k, "sizes": len(at)} for where, k, at in policy.branches()],
        "orders": [
            vars(one) | dict(zip(MEAN, policy.mean_regret(k), strict=True)) for k, one in enumerate(policy.orders)
        ],
        **dict(zip(MEAN, policy.mean_regret(), strict=True)),
        "worst_regret_pct": max(policy.regrets),
        "held_out_regret_pct": policy.held_out,
        "sizes": [
            {
                "label": case.label, "values": dict(case.values), "calls": case.calls, "order": order,
                "regret_pct": regret[order], "regret_among_all_pct": behind,
                "launch_order_regret_pct": regret[0], "order_matters": matters,
                "measure": measure,
            }
            for case, order, regret, matters, measure, behind in cases
        ],
    }  # fmt: skip


def write_policy(policy: Policy, folder: Path) -> list[str]:
    """Write all files of a policy into a folder; their names."""
    check_folder(folder)
    text, chooses = kernel_text(policy), parse_form(numbers(policy, "pid ="))
    note = f"{policy.kernel} on {policy.gpu.title}: {claim(policy)}"
    whole = Swizzle.parse(text)
    files = {
        "policy.txt": f"# {note}\n{text}",
        "policy.py": python_text(policy),
        "policy_triton.py": emit_triton(whole.form, "policy"),
        "policy.hpp": f"// {note}\n#pragma once\n{emit_hip(whole.form, 'policy')}\n{emit_hip(chooses, 'policy_order')}",
        "policy.json": json.dumps(document(policy), indent=1, allow_nan=False) + "\n",
        "test_policy.py": _TEST,
    }
    for name, content in files.items():
        write_whole(folder / name, content.encode())
    return [*files, *(["policy.png"] if draw(policy, folder / "policy.png") else [])]


def draw(policy: Policy, path: Path) -> bool:
    """Draw order and regret at every size, over two sizes, those that decide first; false where none varies."""
    from matplotlib.figure import Figure

    names = [name for name in policy.cases[0].values if all(name in one.values for one in policy.cases)]
    counts = {name: len({one.values[name] for one in policy.cases}) for name in names}
    read = read_names(policy)
    axes = sorted(counts, key=lambda name: (name.startswith("num_"), name not in read, -counts[name]))
    axes = [name for name in axes if counts[name] > 1][:2]
    if not axes:
        return False
    figure = Figure(figsize=(7, 5), layout="constrained")
    plot = figure.add_subplot()
    for k, order in enumerate(policy.orders):
        at = [i for i, one in enumerate(policy.chosen) if one == k]
        places = [[policy.cases[i].values[name] for i in at] for name in axes]
        y = places[1] if len(axes) > 1 else [policy.regrets[i] for i in at]
        sizes = [20 + 60 * min(policy.regrets[i], 5) for i in at]
        plot.scatter(places[0], y, s=sizes, alpha=0.6, label=order.name)
    below = axes[1] if len(axes) > 1 else "regret [%], simulated"
    plot.set(title=f"{policy.kernel} on {policy.gpu.title}", xlabel=axes[0], ylabel=below, xscale="log")
    if len(axes) > 1:
        plot.set_yscale("log")
    plot.legend(fontsize="small", title="order; larger where it loses more, simulated", title_fontsize="small")
    figure.savefig(path, dpi=120)
    return True
