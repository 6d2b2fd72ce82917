"""What a prompt says of the kernel itself: its source, its tensors, small index tables, work and sharing."""

from __future__ import annotations

import ast
from typing import Any

import numpy as np

from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.pricing.sharing import middle_of, sharing, sharing_words
from swizzle_sim.workload.kernels import Kernel
from swizzle_sim.workload.launch import Array
from xcd_model.errors import SwizzleSimError

MOST_ITEMS = 1024  # of an index table that is shown
MOST_RUNS = 64  # of equal items


def source_of(kernel: Kernel) -> str:
    """Triton source without docstrings and imports, which tell a model nothing of the addresses."""
    text = kernel.triton_source
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return text
    left_out: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom) and node in tree.body:
            left_out |= set(range(node.lineno, node.end_lineno + 1 if node.end_lineno else node.lineno + 1))
        if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node) is not None:
            said = node.body[0]
            if len(node.body) > 1 and said.end_lineno is not None:
                left_out |= set(range(said.lineno, said.end_lineno + 1))
    kept = (line for number, line in enumerate(text.splitlines(), 1) if number not in left_out)
    return "\n".join(kept).strip("\n") + "\n"


def access_summary(scorer: Scorer, *, hardware: bool = True) -> dict[str, Any]:
    """Grid, tensors, work and index tables; with the sharing that was counted where the kernel itself says nothing."""
    kernel, trace = scorer.kernel, scorer.plan.trace
    touches = np.zeros(len(trace.tensors), np.int64)
    np.add.at(touches, trace.tensor[trace.template], trace.entries_per_template[trace.template])
    tensors = {
        t.name: {"bytes": t.size_bytes, "touches_per_line": round(float(n) / t.n_lines, 2)}
        for t, n in zip(trace.tensors, touches, strict=True)
    }
    summary: dict[str, Any] = {"grid": str(kernel.grid), "tensors": tensors, "work": str(scorer.work)}
    if kernel.programs:
        takes = f"program p computes p, p + {kernel.programs}, ..."
        if kernel.claims:
            pools, local, steals = kernel.claims.pools, kernel.claims.local, kernel.claims.steals
            takes = f"a free program p claims the next of ids p % {pools}, p % {pools} + {pools}, ... below {local}, "
            takes += "or, once those are gone, " + "of the pools after its own in turn, then " * steals
            takes += "the next of the other ids"
        summary["persistent"] = f"{kernel.programs} programs; {takes}"
    if tables := index_tables(kernel):
        summary["index_tables"] = tables
    if not kernel.sharing.strip():
        middle = middle_of(kernel.grid)
        shared = sharing(trace, middle)
        gpu = scorer.gpu if hardware else None
        summary["sharing"] = sharing_words(shared, kernel.grid, middle, gpu, kernel.programs)
    return summary


def index_tables(kernel: Kernel) -> dict[str, str]:
    """Small integer tensors whose values decide addresses, such as a table of experts: runs of equal items."""
    try:
        arguments = kernel.launch.arguments if kernel.launch else {}
    except SwizzleSimError:  # a recorded kernel whose file is gone
        return {}
    names = [
        name
        for name, one in arguments.items()
        if isinstance(one, Array) and one.is_index and one.role == "in" and np.prod(one.shape) <= MOST_ITEMS
    ]
    if not names or kernel.launch is None:
        return {}
    values = kernel.launch.make_inputs(0)
    runs = {name: _runs(np.asarray(values[name]).ravel()) for name in names if name in values}
    return {name: text for name, text in runs.items() if text}


def _runs(values: np.ndarray) -> str:
    """Such as ``0 x 22, 1 x 20``; empty where there are too many runs to show."""
    starts = np.concatenate([[0], np.flatnonzero(np.diff(values)) + 1])
    if starts.size > MOST_RUNS:
        return ""
    counts = np.diff([*starts.tolist(), values.size])
    return ", ".join(f"{values[at]} x {n}" if n > 1 else str(values[at]) for at, n in zip(starts, counts, strict=True))
