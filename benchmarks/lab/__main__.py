"""Measure a GPU: ``python -m swizzle_benchmarks.lab`` lists what each command measures, writes and needs.

A measuring command writes its tables into a folder. The tables of one NVIDIA H200 so made are committed in
``benchmarks/validation/data``, by the names in the list. The other commands derive constants from those tables, or from
compiled code, and need no GPU.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Command:
    """One command of the laboratory.

    Parameters
    ----------
    where : str
        ``module:function`` below `swizzle_benchmarks.lab`.
    what : str
        What it measures or derives.
    tables : tuple of str
        Committed tables below ``benchmarks/validation/data`` that it wrote, or that it reads.
    needs : str
        Hardware, programs and time.
    takes : str
        ``FOLDER`` to write into, ``""`` for no argument, else ``...``: it reads its own command line.
    """

    where: str
    what: str
    tables: tuple[str, ...]
    needs: str
    takes: str = "FOLDER"


NVCC = "an NVIDIA GPU and nvcc"
NCU = f"{NVCC}, ncu with access to the counters"
TORCH = "an NVIDIA GPU, torch and Triton"
H200 = "machine/h200"
COMMANDS = {
    "latency": Command(
        "memory:latency", "latency and bandwidth of L1, L2 and HBM", (f"{H200}.csv",), f"{NVCC}; 20 s"
    ),
    "waits": Command(
        "memory:waits", "read latency under load, and the gap between two workgroups of an SM",
        (f"{H200}_waits.csv", f"{H200}_starts.csv"), f"{NVCC}, 6 GiB; 10 s",
    ),
    "fill": Command(
        "memory:fill", "how long a workgroup waits for a burst of copies to shared memory, and what it adds a byte",
        (f"{H200}_fill.csv",), f"{NVCC}; 5 s",
    ),
    "instructions": Command("steps:instructions", "cycles to the next instruction that needs a result",
        (f"{H200}_instructions.csv",), f"{NVCC} for sm_90a; 5 s"),
    "steps": Command("steps:steps", "time of a step of products by when its copies go out", (f"{H200}_steps.csv",),
        f"{NVCC} for sm_90a; 5 s"),
    "steps-replay": Command("steps:steps_replayed", "simulated time of those steps", (f"{H200}_steps.csv",),
        "no GPU; 20 s", ""),
    "shared-memory": Command("steps:shared_memory", "clocks of products beside stores into shared memory",
        (f"{H200}_shared_memory.csv",), f"{NVCC} for sm_90a; 5 s"),
    "product-steps": Command("product_steps:product_steps",
        "time of a step of a small product by workgroups an SM", (f"{H200}_product_steps.csv",),
        "an H200, torch and Triton; 20 s"),
    "product-steps-replay": Command("product_steps:product_steps_replayed", "simulated time of those steps",
        (f"{H200}_product_steps.csv",), "no GPU, Triton; 1 min", ""),
    "operands": Command("operands:operands", "time of a step of products by where its operands come from",
        (f"{H200}_operands.csv",), f"{NVCC} for sm_90a, 3 GiB, 132 SMs; 5 s"),
    "operands-replay": Command("operands:operands_replayed", "simulated time of those steps",
        (f"{H200}_operands.csv",), "no GPU; 30 s", ""),
    "l1": Command(
        "caches:l1", "L1 capacity next to shared memory, and the shared memory taken for a launch",
        (f"{H200}_l1.csv", f"{H200}_l1_drawn.csv", f"{H200}_carve_outs.csv"), f"{NCU}; 30 s",
    ),
    "l1-passes": Command("caches:l1_passes", "cycles of a warp's load from the L1 by where its lanes read",
        (f"{H200}_l1_passes.csv",), f"{NVCC}; 10 s"),
    "l2": Command("caches:l2", "L2 capacity and replacement, with stores and without", (f"{H200}_l2.csv",),
        f"{NCU}, 5 GiB; 1 min"),
    "coalescer": Command("caches:coalescer", "sectors that reach the L2 of reads that SMs make together",
        (f"{H200}_coalescer.csv",), f"{NCU}; 20 s"),
    "meeting": Command("caches:meeting", "time and sectors of copies that SMs of a GPC make of the same",
        (f"{H200}_meeting.csv",), f"{NCU} for sm_90a; 10 s"),
    "partitions": Command(
        "partitions:partitions", "point of coherence of each address, and capacity of both L2 partitions",
        (f"{H200}_side_clocks.csv", f"{H200}_side_homes.csv", f"{H200}_sides.csv"), f"{NCU}, 4 GiB; 40 s",
    ),
    "hbm-rows": Command(
        "hbm_rows:hbm_rows", "time of a piece of memory by its distance to others", (f"{H200}_memory_rows.csv",),
        f"{NVCC}, 5 GiB; 10 s",
    ),
    "hbm-rows-fit": Command(
        "hbm_rows:hbm_rows_fit", "row length and interleave that explain those times", (f"{H200}_memory_rows.csv",),
        "no GPU; 1 min", "",
    ),
    "passes": Command("passes:passes", "time of passes over memory by tiles in several orders",
        (f"{H200}_orders.csv",), f"{TORCH}; 30 s"),
    "passes-replay": Command(
        "passes:passes_replayed", "simulated time and row activations of those passes", (f"{H200}_orders.csv",),
        "no GPU; 4 min", "",
    ),
    "walks": Command("walks:walks", "time of narrow passes over memory, across, down and drawn",
        (f"{H200}_walks.csv", f"{H200}_walks_again.csv"), f"{NVCC}, 2 GiB; 5 s"),
    "walks-replay": Command(
        "walks:walks_replayed", "simulated time of those passes, and what opening rows is of it",
        (f"{H200}_walks.csv", f"{H200}_walks_again.csv"), "no GPU; 5 min", "",
    ),
    "power": Command(
        "power:power", "joules of bytes, operations and GEMMs",
        (f"{H200}_power.csv", f"{H200}_power_again.csv"), f"{TORCH}, nvcc, a driver that counts joules; 4 min",
    ),
    "energy-rates": Command(
        "power:energy_rates", "picojoules of a byte and of an operation", (f"{H200}_power.csv", f"{H200}_ncu.csv"),
        "no GPU", "",
    ),
    "skew": Command("skew:skew", "how far workgroups of one launch run ahead of each other", ("drift/h200.csv",),
        f"{TORCH}; 10 s"),
    "gpc-drift": Command("gpc_drift:gpc_drift", "which GPCs are slow, and how two workgroups of an SM stand",
        ("drift/h200_gpcs.csv", "drift/h200_pairs.csv"), f"{TORCH}; 10 s"),
    "counters": Command(
        "counters:counters", "counters of the H200 table's kernels under any order",
        ("h200_again.csv", "contributed.csv"), f"{TORCH}, ncu with access to the counters; 4 min for all", "...",
    ),
    "bundles": Command(
        "bundles_counted:bundles_counted", "time and counters of every order of many bundles, in two processes",
        ("held_out_counted.csv",), f"{TORCH}, ncu with access to the counters; 3 min for 80 orders",
        "...",
    ),
    "fdtd-stores": Command(
        "compiled_code:fdtd_stores", "store instructions of FDTD with border masks on gfx942", (), "Triton, no GPU", "",
    ),
    "stencil-loads": Command(
        "compiled_code:stencil_loads", "dependent loads of the H200 table's stencils", (f"{H200}_stencil_code.csv",),
        "Triton 3.6.0, no GPU", "...",
    ),
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
    if command.takes == "...":
        getattr(importlib.import_module(f"swizzle_benchmarks.lab.{module}"), function)(rest)
        return
    parser = argparse.ArgumentParser(
        prog=f"python -m swizzle_benchmarks.lab {name}", description=f"{_capital(command.what)}. Needs {command.needs}."
    )
    if command.takes:
        parser.add_argument("folder", type=Path, metavar="FOLDER", help="where the tables are written")
    arguments = vars(parser.parse_args(rest)).values()
    for folder in arguments:
        folder.mkdir(parents=True, exist_ok=True)
    getattr(importlib.import_module(f"swizzle_benchmarks.lab.{module}"), function)(*arguments)


def listing() -> str:
    """Text of the list."""
    lines = ["python -m swizzle_benchmarks.lab COMMAND ...", ""]
    for name, command in COMMANDS.items():
        tables = ", ".join(command.tables) or "none"
        lines += [f"{name} {command.takes}".rstrip(), f"    {_capital(command.what)}."]
        lines += [f"    Needs {command.needs}. Tables: {tables}.", ""]
    return "\n".join(lines)


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


if __name__ == "__main__":
    main()
