"""A candidate as a standalone HIP program: the suite's GEMM and transpose in C++, with and without the swizzle."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources
from string import Template

from swizzle_sim.hardware.device import Device
from swizzle_sim.release import version
from swizzle_sim.rewrite.normal import axes_of
from swizzle_sim.swizzle.emit_hip import emit_hip
from swizzle_sim.swizzle.grid import Grid, bind
from swizzle_sim.swizzle.ir import Form
from swizzle_sim.swizzle.variables import arguments

KERNELS = ("gemm", "transpose")
OUTPUTS_A_THREAD = 64  # fp32 accumulators of the GEMM
STEP = 16  # K items a step


def hip_source(
    kernel: str, device: Device, form: Form, grid: Grid, problem: Mapping[str, int], name: str, file: str
) -> str:
    """C++ source of a program that checks and times one candidate.

    Parameters
    ----------
    kernel : {"gemm", "transpose"}
    device : Device
    form : Form
        In normal form, as `swizzle_sim.rewrite` guards it.
    grid : Grid
    problem : mapping of str to int
    name, file : str
        Of the candidate, and of the file this goes to.

    Returns
    -------
    source : str
        One file, for hipcc; a plain C++ compiler takes it with a stand-in for HIP's headers.
    """
    here = resources.files("swizzle_sim.hardware").joinpath("files")
    axes = axes_of(grid)
    values = bind([one for one in arguments(form) if one not in axes], grid, device.xcds, problem).constants
    call = f"swizzle({', '.join(one if one in axes else str(values[one]) for one in arguments(form))})"
    body = Template(here.joinpath(f"{kernel}.hip.in").read_text(encoding="utf-8")).substitute(call=call)
    lines = _gemm(problem, grid) if kernel == "gemm" else _transpose(problem, grid)
    given = {
        **{"kernel": kernel, "title": device.title, "arch": device.arch, "version": version()},
        **{"swizzle": emit_hip(form), "constants": "\n".join(lines), "body": body, "file": file},
        "name": "".join(c if c.isprintable() and c not in '\\"' else " " for c in name)[:80],
    }
    return Template(here.joinpath("main.hip.in").read_text(encoding="utf-8")).substitute(given)


def _constants(values: Mapping[str, int], inputs: tuple[int, int], output: int) -> list[str]:
    lines = [f"constexpr int {name} = {value};" for name, value in values.items()]
    lines.append(f"constexpr long INPUT[2] = {{{inputs[0]}L, {inputs[1]}L}};")
    return [*lines, f"constexpr long OUTPUT = {output}L, LARGEST = {max(*inputs, output)}L;"]


def _gemm(problem: Mapping[str, int], grid: Grid) -> list[str]:
    m, n, k, block_m, block_n = (problem[name] for name in ("M", "N", "K", "BLOCK_M", "BLOCK_N"))
    threads = min(1024, max(64, block_m * block_n // OUTPUTS_A_THREAD))
    wide = min(block_n, 32)
    values = {"M": m, "N": n, "K": k, "BLOCK_M": block_m, "BLOCK_N": block_n, "STEP": STEP}
    values |= {"NUM_PID_N": -(-n // block_n), "THREADS": threads, "WIDE": wide, "HIGH": threads // wide}
    return _constants(values | {"GRID_X": grid.num_pids, "GRID_Y": 1}, (m * k, k * n), m * n)


def _transpose(problem: Mapping[str, int], grid: Grid) -> list[str]:
    values = {name: problem[name] for name in ("M", "N", "BLOCK_SIZE_M", "BLOCK_SIZE_N")}
    size = problem["M"] * problem["N"]
    return _constants(values | {"THREADS": 256, "GRID_X": grid.launch[0], "GRID_Y": grid.launch[1]}, (size, 0), size)
