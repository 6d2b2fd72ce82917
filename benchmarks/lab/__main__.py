"""``python -m swizzle_benchmarks.lab`` lists its commands: constants from stored tables, and counters of an NVIDIA GPU.

Tables of one H200 are in ``benchmarks/validation/data``; its README says what each holds. Only ``counters`` and
``bundles`` need a GPU.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Command:
    """One command of the laboratory: ``module:function`` below this package, its tables, and what it needs."""

    where: str
    what: str
    tables: tuple[str, ...]
    needs: str
    reads_words: bool = False


TORCH = "an NVIDIA GPU, torch and Triton"
H200 = "machine/h200"
COMMANDS = {
    "steps-replay": Command("steps:steps_replayed", "simulated time of those steps", (f"{H200}_steps.csv",),
        "no GPU; 20 s"),
    "product-steps-replay": Command("product_steps:product_steps_replayed", "simulated time of those steps",
        (f"{H200}_product_steps.csv",), "no GPU, Triton; 1 min"),
    "operands-replay": Command("operands:operands_replayed", "simulated time of those steps",
        (f"{H200}_operands.csv",), "no GPU; 30 s"),
    "hbm-rows-fit": Command(
        "hbm_rows:hbm_rows_fit", "row length and interleave that explain those times", (f"{H200}_memory_rows.csv",),
        "no GPU; 1 min"),
    "passes-replay": Command(
        "passes:passes_replayed", "simulated time and row activations of those passes", (f"{H200}_orders.csv",),
        "no GPU; 4 min"),
    "walks-replay": Command(
        "walks:walks_replayed", "simulated time of those passes, and what opening rows is of it",
        (f"{H200}_walks.csv", f"{H200}_walks_again.csv"), "no GPU; 5 min"),
    "energy-rates": Command(
        "power:energy_rates", "picojoules of a byte and of an operation", (f"{H200}_power.csv", f"{H200}_ncu.csv"),
        "no GPU"),
    "counters": Command(
        "counters:counters", "counters of the H200 table's kernels under any order",
        ("h200_again.csv", "contributed.csv"), f"{TORCH}, ncu with access to the counters; 4 min for all", True),
    "bundles": Command(
        "bundles_counted:bundles_counted", "time and counters of every order of many bundles, in two processes",
        ("held_out_counted.csv",), f"{TORCH}, ncu with access to the counters; 3 min for 80 orders",
        "...",
    ),
    "levers": Command(
        "levers:levers", "what each lever of five kernels is predicted to bring, and run.py that measures it", (),
        "Triton, no GPU; minutes", True),
    "fdtd-stores": Command(
        "compiled_code:fdtd_stores", "store instructions of FDTD with border masks on gfx942", (), "Triton, no GPU"),
    "stencil-loads": Command(
        "compiled_code:stencil_loads", "dependent loads of the H200 table's stencils", (f"{H200}_stencil_code.csv",),
        "Triton 3.6.0, no GPU", True),
    "dependent-loads": Command(
        "compiled_code:dependent_loads", "round trips to memory that a thread of disassembled code makes", (), "no GPU",
        "...",
    ),
}  # fmt: skip


def main(words: Sequence[str] | None = None) -> None:
    """List the commands, or run one."""
    given = list(sys.argv[1:] if words is None else words)
    if not given or given[0] in ("-h", "--help"):
        print(listing(), end="")
        return
    name, *rest = given
    if name not in COMMANDS:
        sys.exit(f"no command {name!r}; one of {', '.join(COMMANDS)}")
    command = COMMANDS[name]
    module, _, function = command.where.partition(":")
    run = getattr(importlib.import_module(f"swizzle_benchmarks.lab.{module}"), function)
    if command.reads_words:
        run(rest)
        return
    about = f"{_capital(command.what)}. Needs {command.needs}."
    argparse.ArgumentParser(prog=f"python -m swizzle_benchmarks.lab {name}", description=about).parse_args(rest)
    run()


def listing() -> str:
    """Text of the list."""
    lines = ["python -m swizzle_benchmarks.lab COMMAND ...", ""]
    for name, command in COMMANDS.items():
        tables = ", ".join(command.tables) or "none"
        lines += [f"{name} ..." if command.reads_words else name, f"    {_capital(command.what)}."]
        lines += [f"    Needs {command.needs}. Tables: {tables}.", ""]
    return "\n".join(lines)


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


if __name__ == "__main__":
    main()
