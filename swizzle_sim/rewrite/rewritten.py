"""`Rewritten`, a kernel's file with a swizzle in it, and how it is written: whole, and never over the original."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import Path

from swizzle_sim.base.atomic_write import write_whole
from swizzle_sim.language.grid import Grid
from swizzle_sim.rewrite.guard import Guarded
from swizzle_sim.rewrite.source import read_kernel
from swizzle_sim.rewrite.tile_counts import grid_of_tiles
from swizzle_sim.triton_source.definitions import Definitions
from swizzle_sim.workload.launch import Launch
from xcd_model.errors import RewriteError, RunError


@dataclass(frozen=True)
class Rewritten:
    """A kernel's file with a swizzle in it."""

    path: Path  # the original file
    function: str
    original: bytes  # the file before and after
    text: bytes
    guarded: Guarded  # what the helper computes
    grid: Grid  # of what is remapped: workgroups, or a persistent kernel's tiles
    num_xcds: int
    at: str  # ``"program"`` or ``"tile"``: whose ids are remapped
    constexpr: str  # name of the parameter for the number of XCDs; empty if the swizzle needs none
    count: str = ""  # in a persistent kernel, the text of its number of tiles
    note: str = ""  # why the program's id is remapped in a kernel that looks persistent; empty otherwise
    claimed: bool = False  # in a persistent kernel, whether its programs claim their tiles from an atomic counter

    def grid_at(self, launch: Launch, grid: Grid) -> Grid:
        """Grid of what is remapped, at another launch of the kernel whose grid is ``grid``."""
        if self.at == "program":
            return grid
        source = read_kernel(self.path, self.original, self.function)
        kernel = source.functions[source.inner(self.function)]
        found = grid_of_tiles(Definitions(kernel), self.count, launch, grid)
        if found is None:
            raise RewriteError(f"cannot tell how many tiles {self.count} is", path=self.path)
        return found

    def diff(self, name: str = "") -> str:
        """Unified diff from the original to the rewritten file."""
        before, after = (
            text.decode("utf-8", "replace").splitlines(keepends=True) for text in (self.original, self.text)
        )
        new = name or f"{self.path.stem}_swizzled.py"
        return "".join(difflib.unified_diff(before, after, self.path.name, new))


def check_target(rewritten: Rewritten, out: Path) -> None:
    """Refuse a place that the rewritten kernel cannot be written to."""
    if out.exists() and out.resolve() == rewritten.path.resolve():
        raise RewriteError("is the kernel itself: write the rewritten one to another file", path=out)
    if out.is_dir():
        raise RewriteError("is a folder: name a file in it", path=out)
    if not out.absolute().parent.is_dir():
        raise RewriteError(f"cannot be written: there is no folder {out.parent}", path=out)


def write_rewritten(rewritten: Rewritten, out: Path) -> None:
    """Write the rewritten file, whole or not at all."""
    check_target(rewritten, out)
    try:
        write_whole(out, rewritten.text)
    except RunError as error:
        reason = getattr(error.__cause__, "strerror", None)
        raise RewriteError(f"cannot be written ({reason})", path=out) from None
