"""The kernel of a run with its best swizzle in it, as the page shows it: the diff and the whole text."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from swizzle_sim.language import Swizzle
from swizzle_sim.rewrite.kernel import rewrite_kernel
from swizzle_sim.workload.kernels import Kernel
from xcd_model import Gpu
from xcd_model.errors import SwizzleSimError

LONGEST = 200_000  # characters of a kernel's file that the page carries


@dataclass(frozen=True)
class Code:
    """A rewritten kernel, or why there is none.

    Parameters
    ----------
    name : str
        Of its file.
    diff, text : str
    checked : bool
        Whether a file with this text lies in the run folder: it is written only after it was checked.
    note : str
        What was remapped, and where the swizzle is taken.
    why_not : str
        Empty where there is a rewritten kernel.
    """

    name: str = ""
    diff: str = ""
    text: str = ""
    checked: bool = False
    note: str = ""
    why_not: str = ""


def rewritten(kernel: Kernel, source: str, gpu: Gpu, folder: Path) -> Code:
    """Rewrite the kernel of a run as ``swizzle-sim rewrite`` does, without running it.

    Parameters
    ----------
    kernel : Kernel
    source : str
        Of the best swizzle.
    gpu : Gpu
    folder : Path
        Of the run.
    """
    if kernel.launch is None:
        return Code(why_not=f"{kernel.name} comes without the launch of a Triton kernel, as a trace file does")
    try:
        found = rewrite_kernel(
            kernel.launch,
            Swizzle.parse(source),
            grid=kernel.grid,
            num_xcds=gpu.xcds,
            sizes=kernel.problem,
            lattice=kernel.lattice,
            at="program" if kernel.programs is None else "tile",
        )
    except SwizzleSimError as error:
        return Code(why_not=str(error))
    name = f"{found.path.stem}_swizzled.py"
    if len(found.text) > LONGEST:
        return Code(why_not=f"{found.path.name} is too long to show here: swizzle-sim rewrite writes it")
    guard = found.guarded.condition
    where = f"where {guard}, and the launch order elsewhere" if guard else "on every grid"
    return Code(
        name=name,
        diff=found.diff(name),
        text=found.text.decode("utf-8", "replace"),
        checked=_is_there(folder / name, found.text),
        note=f"The {found.at}'s id is remapped {where}.",
    )


def _is_there(path: Path, text: bytes) -> bool:
    try:
        return path.read_bytes() == text
    except OSError:
        return False


def diff_lines(diff: str) -> list[tuple[str, str]]:
    """Lines of a unified diff, each with its class of the style sheet."""
    styles = {"+": "added", "-": "taken", "@": "place"}
    lines = diff.splitlines()
    return [(line, "place" if i < 2 else styles.get(line[:1], "same")) for i, line in enumerate(lines)]
