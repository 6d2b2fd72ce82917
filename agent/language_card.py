"""The closed language, described for a model from the same tables that the parser reads."""

from __future__ import annotations

from swizzle_sim.kernels import Kernel
from swizzle_sim.swizzle.grid import Grid
from swizzle_sim.swizzle.rules import (
    ASSIGN_RESULT,
    BINARY_OPS,
    CALL_HINT,
    COMPARE_OPS,
    MAX_LOOPS,
    RANGES,
)


def language_card(kernel: Kernel, *, schedule: bool = True) -> str:
    """Describe what a swizzle of a kernel may say.

    Parameters
    ----------
    kernel : Kernel
    schedule : bool
        Whether to name ``num_xcds``; off where the model is told nothing of the hardware.
    """
    names = grid_names(kernel.grid)
    if schedule:
        names["num_xcds"] = "number of XCDs of the GPU"
    lines = [
        "A swizzle is a few Python-like statements over 32-bit integers.",
        "Statements: assignment (also a, b = b, a and a, b = divmod(x, y)), += and the like, if/elif/else, "
        f"for over {RANGES[0]}(...) with a literal step, at most {MAX_LOOPS} deep, and x if c else y.",
        f"Operators: {' '.join(BINARY_OPS.values())}, unary -, {' '.join(COMPARE_OPS.values())}, and, or, not.",
        f"Calls: {CALL_HINT}.",
        "A // or % of operands with opposite signs is refused, since Python and a GPU differ there; so is a value "
        "outside the signed 32-bit range.",
        f"The answer: {ASSIGN_RESULT}.",
        "Names that have a value:",
        *(f"- {name}: {meaning}" for name, meaning in names.items()),
        "Sizes of this kernel, by name: " + ", ".join(f"{name} = {size}" for name, size in kernel.problem.items()),
    ]
    return "\n".join(lines)


def grid_names(grid: Grid) -> dict[str, str]:
    """Names that a grid gives a value, with their meaning."""
    names = {"pid": f"linear id that the hardware gave, 0 to {grid.num_pids - 1}", "num_pids": "workgroups in all"}
    if grid.tiles:
        names["num_pid_m, num_pid_n"] = f"tile rows and columns, {grid.tiles[0]} and {grid.tiles[1]}"
        names["pid_m, pid_n"] = "tile of this workgroup as launched: pid // num_pid_n, pid % num_pid_n"
    elif len(grid.launch) > 1:
        axes = "xyz"[: len(grid.launch)]
        for axis, side in zip(axes, grid.launch, strict=True):
            names[f"pid_{axis}, num_pid_{axis}"] = f"tl.program_id and tl.num_programs along {axis}, of {side}"
        if len(grid.launch) == 2:
            names["pid_m, pid_n"] = "the same as pid_x, pid_y"
    return names
