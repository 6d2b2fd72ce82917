"""Names the grids on which a candidate holds: the weakest condition, of a list, that fits all trials."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from swizzle_sim.swizzle.binding import coordinates
from swizzle_sim.swizzle.form import Assign, Cond, Expr, For, Form, If, Int, Stmt
from swizzle_sim.swizzle.grid import Grid
from swizzle_sim.swizzle.reads import parts
from swizzle_sim.swizzle.verdict import EVERYWHERE, NOWHERE, THIS_GRID_ONLY, UNNAMED

_LEAST_POINTS = 3  # a condition that fewer trials satisfy is an accident
_MOST_LITERALS = 5


@dataclass(frozen=True)
class Trial:
    """One grid, one XCD count, and whether the candidate was a permutation there."""

    grid: Grid
    num_xcds: int
    passed: bool


def name_domain(trials: list[Trial], form: Form, complete: bool = True) -> str:
    """Say where a candidate holds.

    Parameters
    ----------
    trials : list of Trial
        The first is the grid in hand.
    form : Form
        Its literals, such as a group size, take part in the conditions tried.
    complete : bool
        Whether every trial that was planned took place; if not, nothing is generalised from those that did.

    Returns
    -------
    domain : str
        See `Verdict`.
    """
    passed = np.array([trial.passed for trial in trials])
    if not complete:
        return THIS_GRID_ONLY if passed[0] else UNNAMED if passed.any() else NOWHERE
    if passed.all():  # one grid with several XCD counts is no evidence for others
        return EVERYWHERE if len({trial.grid for trial in trials}) > 1 else THIS_GRID_ONLY
    if not passed.any():
        return NOWHERE
    texts, masks = _conditions(trials, form)
    found = _weakest(texts, masks, passed)
    if found:
        return found
    return THIS_GRID_ONLY if passed[0] else UNNAMED


def _weakest(texts: list[str], masks: np.ndarray, passed: np.ndarray) -> str:
    """Return the condition, or pair of them, that covers most passing trials and no failing one; first of equals."""
    good = masks[:, passed].astype(np.int32)
    bad = masks[:, ~passed].astype(np.int32)
    covers = good @ good.T  # [i, j]: trials where i and j both hold; the diagonal is one condition alone
    covers[(bad @ bad.T) > 0] = 0
    if passed[0]:  # a domain that leaves out the grid in hand would be of no use
        covers[~np.outer(masks[:, 0], masks[:, 0])] = 0
    alone = np.diag(covers)
    best = int(covers.max())
    if best < _LEAST_POINTS:
        return ""
    if alone.max() == best:
        return texts[int(np.argmax(alone))]
    i, j = np.unravel_index(int(np.argmax(covers)), covers.shape)
    return f"{texts[i]} and {texts[j]}"


def _conditions(trials: list[Trial], form: Form) -> tuple[list[str], np.ndarray]:
    """Return every condition's text and the trials, (n_conditions, n_trials), where it holds."""
    xcds = np.array([trial.num_xcds for trial in trials])
    sides = _sides(trials, form)
    rows: dict[str, np.ndarray] = {}
    # A candidate that never asks how many XCDs there are cannot depend on it.
    asks = any(name.lower() == "num_xcds" for name in form.inputs)
    divisors = {"num_xcds": xcds, "(num_xcds * num_xcds)": xcds * xcds} if asks else {}
    divisors |= {str(value): np.full_like(xcds, value) for value in _literals(form)}
    for divisor, below in divisors.items():
        rows |= {f"{name} % {divisor} == 0": side % below == 0 for name, side in sides.items()}
    for divisor, below in divisors.items():
        rows |= {f"{name} >= {divisor}": side >= below for name, side in sides.items()}
        rows |= {f"{name} <= {divisor}": side <= below for name, side in sides.items()}
    if asks:
        rows[f"num_xcds == {xcds[0]}"] = xcds == xcds[0]
        rows["num_xcds a power of two"] = _is_power(xcds)
    rows |= {f"{name} a power of two": _is_power(side) for name, side in sides.items()}
    pids = sides["num_pids"]
    rows["num_pids a power of four"] = _is_power(pids) & ((pids & 0x55555555) != 0)  # what bit-pair swaps need
    if asks:
        rows["num_pids and num_xcds powers of two"] = _is_power(pids) & _is_power(xcds)
    rows |= _square(sides)
    return list(rows), np.array(list(rows.values()))


def _square(sides: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    names = [name for name in sides if name != "num_pids"]
    if len(names) != 2:
        return {}
    a, b = names
    return {
        f"{a} == {b}": sides[a] == sides[b],
        f"{a} and {b} powers of two": _is_power(sides[a]) & _is_power(sides[b]),
    }


def _sides(trials: list[Trial], form: Form) -> dict[str, np.ndarray]:
    """Extents of a grid by name, spelled as the candidate spells its coordinates."""
    axes = [coordinates(trial.grid) for trial in trials]
    spelled = ("pid_x", "pid_y", "pid_z") if "pid_m" not in axes[0] or "x" in form.results[0] else ("pid_m", "pid_n")
    names = ["pid", *(name for name in spelled if all(name in axis for axis in axes))]
    if len(names) == 2:  # one axis: its extent is num_pids
        names.pop()
    return {f"num_{name}s" if name == "pid" else f"num_{name}": _extents(name, axes) for name in names}


def _extents(name: str, axes: list[dict]) -> np.ndarray:
    return np.array([axis[name].extent for axis in axes], np.int64)


def _is_power(values: np.ndarray) -> np.ndarray:
    return (values & (values - 1)) == 0


def _literals(form: Form) -> list[int]:
    """Return the literals that may be a group size or a count of XCDs, in text order."""
    found: dict[int, None] = {}
    todo: list[Stmt | Expr | Cond] = list(form.body)
    while todo:
        node = todo.pop(0)
        if isinstance(node, Int):
            if 2 <= node.value <= 1024:
                found[node.value] = None
            if 1 <= node.value < 1024 and node.value & (node.value + 1) == 0:
                found[node.value + 1] = None  # a mask of low bits: what matters is one more
        elif isinstance(node, Assign):
            todo.insert(0, node.value)
        elif isinstance(node, If):
            todo[:0] = [node.condition, *node.body, *node.orelse]
        elif isinstance(node, For):
            todo[:0] = [node.start, node.stop, *node.body]
        else:
            todo[:0] = parts(node)
    return list(found)[:_MOST_LITERALS]
