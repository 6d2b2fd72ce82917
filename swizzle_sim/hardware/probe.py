"""A small Triton kernel that writes down which tile the emitted swizzle gives every workgroup on the GPU."""

from __future__ import annotations

from collections.abc import Mapping

from swizzle_sim.rewrite.normal import axes_of
from swizzle_sim.swizzle.emit_triton import emit_triton
from swizzle_sim.swizzle.grid import Grid, bind
from swizzle_sim.swizzle.ir import Form
from swizzle_sim.swizzle.variables import arguments

_XCDS = ("num_xcds", "NUM_XCDS")


def probe_source(form: Form, grid: Grid, num_xcds: int, sizes: Mapping[str, int]) -> tuple[str, dict[str, int]]:
    """Source of the probe and its arguments besides the output.

    Parameters
    ----------
    form : Form
        In normal form: takes and answers the launch's own coordinates.
    grid : Grid
        Of what is remapped.
    num_xcds : int
    sizes : mapping of str to int

    Returns
    -------
    source : str
        A file with a function ``probe(out_ptr, ...)``, launched with one program for each workgroup; ``out_ptr`` takes
        32-bit linear tiles.
    values : dict of str to int
        Arguments by name.
    """
    axes = axes_of(grid)
    taken = [name for name in arguments(form) if name not in axes]
    values = bind(taken, grid, num_xcds, sizes).constants
    strides = {axis: side for axis, side in zip(axes, grid.launch, strict=False)}
    parameters = {f"in_{name}": values[name] for name in taken if name not in _XCDS}
    parameters |= {f"side_{axis}": side for axis, side in strides.items()}
    given = [str(values[name]) if name in _XCDS else name if name in axes else f"in_{name}" for name in arguments(form)]
    body = ["pid = tl.program_id(0)"] if axes == ("pid",) else ["left = tl.program_id(0)"]
    for axis in axes if len(axes) > 1 else ():
        body += [f"{axis} = left % side_{axis}", f"left = left // side_{axis}"]
    body.append(f"{', '.join(axes)} = swizzle({', '.join(given)})")
    tile = axes[-1]
    for axis in reversed(axes[:-1]):
        tile = f"({tile}) * side_{axis} + {axis}"
    body.append(f"tl.store(out_ptr + tl.program_id(0), {tile})")
    lines = [emit_triton(form), "", "@triton.jit", f"def probe({', '.join(['out_ptr', *parameters])}):"]
    lines += ['    """Store the tile of every program."""', *(f"    {line}" for line in body), ""]
    return "\n".join(lines), parameters
