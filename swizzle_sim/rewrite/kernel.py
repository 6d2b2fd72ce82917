"""Rewrites one Triton kernel so that its workgroups compute their tiles in a swizzle's order, and writes its file."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from swizzle_sim.base.atomic_write import write_whole
from swizzle_sim.capture.workload import Workload
from swizzle_sim.language.grid import Grid
from swizzle_sim.language.swizzle import Swizzle
from swizzle_sim.language.variables import XCDS, arguments
from swizzle_sim.rewrite.guard import GENERAL, Emission, Guarded, guarded
from swizzle_sim.rewrite.helper import Helper, Spelling, helper_lines, spelling_of
from swizzle_sim.rewrite.imported_helpers import with_own_helpers
from swizzle_sim.rewrite.normal import axes_of, reads_of
from swizzle_sim.rewrite.persistent import TileLoop, tile_loops
from swizzle_sim.rewrite.place import place_coordinates, place_in_loops, place_in_program
from swizzle_sim.rewrite.source import EditableSource, read_kernel
from swizzle_sim.rewrite.tile_counts import Point, grid_of_tiles, is_count_of_columns, tile_counts
from swizzle_sim.triton_source.definitions import Definitions
from swizzle_sim.triton_source.source_file import ProgramId
from swizzle_sim.workload.launch import Launch
from xcd_model.errors import RewriteError, RunError
from xcd_model.trace.waits import check_waits

AT = ("auto", "program", "tile")


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
        found = grid_of_tiles(kernel, self.count, launch, grid)
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


def rewrite_kernel(
    launch: Launch,
    swizzle: Swizzle,
    *,
    grid: Grid,
    num_xcds: int,
    sizes: Mapping[str, int],
    lattice: Iterable[Point] | None = None,
    at: str = "auto",
    emission: Emission = GENERAL,
) -> Rewritten:
    """Put a swizzle into a kernel.

    Parameters
    ----------
    lattice : iterable of (Grid, sizes), optional
        Other launches of the same kernel.
    """
    if at not in AT:
        raise RewriteError(f"at = {at!r}: one of {', '.join(AT)}")
    path = Path(launch.path)
    try:
        original = path.read_bytes()
    except OSError as error:
        raise RewriteError(f"cannot be read ({error.strerror})", path=path) from None
    source = EditableSource(path, with_own_helpers(path, original, launch.function), launch.function)
    calls = [one for one in source.program_ids() if one.axis is not None and one.axis < len(launch.grid)]
    if not calls:
        raise RewriteError(f"{launch.function} calls no tl.program_id of the launch's axes", path=path)
    loops, note = _loops(source, calls, at)
    if at == "tile" and not loops:
        raise RewriteError(f"{launch.function} has no loop over tiles that starts at its program id", path=path)
    others = list(lattice) if lattice is not None else None
    if loops:
        grid, others = _target_tiles(source, loops, launch, grid, others)
    safe = guarded(swizzle, grid, num_xcds, sizes, others, emission)
    text, constexpr = _edited(source, launch, safe, calls, loops, others or [])
    return Rewritten(
        path=path,
        function=launch.function,
        original=original,
        text=text,
        guarded=safe,
        grid=grid,
        num_xcds=num_xcds,
        at="tile" if loops else "program",
        constexpr=constexpr,
        count=loops[0].count if loops else "",
        note=note,
        claimed=any(loop.claimed for loop in loops),
    )


def rewrite_workload(
    work: Workload, swizzle: Swizzle, *, num_xcds: int, at: str = "auto", emission: Emission = GENERAL
) -> Rewritten:
    """Put a swizzle into a workload's kernel; the ids that are remapped are those that its scores count."""
    if work.programs is not None and at == "program":
        raise RewriteError(
            f"{work.name} is declared with programs=..., so a swizzle orders its {work.grid.num_pids} tiles: leave "
            "that out of the declaration to order its programs",
            path=work.launch.path,
        )
    if at == "auto":
        at = "program" if work.programs is None else "tile"
    if work.waits:
        check_waits(swizzle.permutation(work.grid, num_xcds, work.problem), work.waits(work.problem))
    return rewrite_kernel(
        work.launch,
        swizzle,
        grid=work.grid,
        num_xcds=num_xcds,
        sizes=work.problem,
        lattice=work.others,
        at=at,
        emission=emission,
    )


def _loops(source: EditableSource, calls: list[ProgramId], at: str) -> tuple[list[TileLoop], str]:
    """Return the loops whose tile ids to remap, and why there are none where one might expect some."""
    try:
        found = tile_loops(source, calls)
    except RewriteError as error:
        if at == "tile":
            raise
        return [], str(error)
    if at == "program" and found:
        return [], f"its {found[0].count} tiles are not what its scores count; a declaration with programs=... says so"
    return found, ""


def _edited(
    source: EditableSource,
    launch: Launch,
    safe: Guarded,
    calls: list[ProgramId],
    loops: list[TileLoop],
    lattice: list[Point],
) -> tuple[bytes, str]:
    """Text of the rewritten file, and the name of the parameter for the number of XCDs, empty where it needs none."""
    spelled = spelling_of(source, calls)
    if spelled.missing:
        source.import_lines(spelled.missing)
    name = source.fresh("swizzle")
    constexpr = _constexpr(source, safe, launch, spelled)
    total = loops[0].count if loops else f"{spelled.language}.num_programs(0)"
    terms = _terms(source, safe, launch, lattice, spelled.language, total)
    terms |= dict.fromkeys(XCDS, constexpr)
    helper = Helper(name, safe.form, axes_of(safe.grid), spelled.language, terms)
    if safe.emission.handed:
        if loops or len(launch.grid) > 1:
            raise RewriteError("coordinates are handed over where the program's one id is remapped", path=launch.path)
        points: list[Point] = [(safe.grid, None), *lattice]
        columns = partial(is_count_of_columns, definitions=_definitions(source), launch=launch, points=points)
        place_coordinates(source, calls, helper, columns)
    elif loops:
        place_in_loops(source, loops, helper)
    else:
        place_in_program(source, calls, helper, len(launch.grid))
    source.before(source.function, helper_lines(safe, name, spelled, source.indent))
    return source.apply(), constexpr


def _constexpr(source: EditableSource, safe: Guarded, launch: Launch, spelled: Spelling) -> str:
    """Name of the kernel's parameter for the number of XCDs, added where it has none."""
    if not set(safe.form.inputs) & set(XCDS):
        return ""
    if launch.constexprs.get("NUM_XCDS") == safe.num_xcds:
        return "NUM_XCDS"
    name = source.fresh("NUM_XCDS")
    source.last_parameter(source.function, f"{name}: {spelled.language}.constexpr = {safe.num_xcds}")
    return name


def _terms(
    source: EditableSource, safe: Guarded, launch: Launch, lattice: list[Point], language: str, total: str
) -> dict[str, str]:
    """Text, in the kernel, of the counts and sizes that the helper takes."""
    reads, definitions = arguments(safe.form), _definitions(source)
    terms = {"num_pids": total}
    for axis, letter in enumerate("xyz"):
        terms[f"num_pid_{letter}"] = f"{language}.num_programs({axis})"
    counts = [name for name in ("num_pid_m", "num_pid_n") if name in reads]
    terms.update(tile_counts(counts, definitions, launch, safe.grid, lattice, total) if counts else {})
    for name in reads_of(reads):
        if name not in definitions.parameters:
            raise RewriteError(
                f"the swizzle reads {name}, which is no parameter of {launch.function}: its parameters are "
                f"{', '.join(definitions.parameters)}",
                path=launch.path,
            )
        terms[name] = name
    return terms


def _definitions(source: EditableSource) -> Definitions:
    return Definitions(source.facts.functions[source.kernel])


def _target_tiles(
    source: EditableSource, loops: list[TileLoop], launch: Launch, grid: Grid, lattice: list[Point] | None
) -> tuple[Grid, list[Point] | None]:
    """Return the grid that a persistent kernel's tile ids count, and other such grids."""
    if len({loop.count for loop in loops}) != 1:
        raise source.refuse("loops over different numbers of tiles: one swizzle cannot remap them all", loops[-1].loop)
    count = loops[0].count
    found = grid_of_tiles(source.facts.functions[source.kernel], count, launch, grid)
    if found is None:
        raise source.refuse(f"cannot tell how many tiles {count} is from the kernel's parameters", loops[0].loop)
    return found, lattice if found == grid else None
