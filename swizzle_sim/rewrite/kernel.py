"""Rewrites one Triton kernel to take its tiles in a swizzle's order."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import libcst as cst

from swizzle_sim.launch import Launch
from swizzle_sim.rewrite.arithmetic import Definitions, evaluate
from swizzle_sim.rewrite.edits import Edits
from swizzle_sim.rewrite.extents import tile_counts, values_of
from swizzle_sim.rewrite.guard import Guarded, guarded
from swizzle_sim.rewrite.helper import helper_statements
from swizzle_sim.rewrite.imports import Spelling, spelling
from swizzle_sim.rewrite.normal import XCDS, reads_of
from swizzle_sim.rewrite.persistent import TileLoop, tile_loops
from swizzle_sim.rewrite.place import place_in_loops, place_in_program
from swizzle_sim.rewrite.source import AxisCall, Source
from swizzle_sim.swizzle.grid import Grid
from swizzle_sim.swizzle.swizzle import Swizzle
from swizzle_sim.swizzle.variables import arguments
from xcd_model.errors import RewriteError

AT = ("auto", "program", "tile")
Point = tuple[Grid, Mapping[str, int] | None]


@dataclass(frozen=True)
class Rewritten:
    """A kernel's file with a swizzle in it.

    Parameters
    ----------
    path : Path
        The original file.
    function : str
    original, text : bytes
        The file before and after.
    guarded : Guarded
        What the helper computes.
    grid : Grid
        Of what is remapped: workgroups, or a persistent kernel's tiles.
    num_xcds : int
    at : str
        ``"program"`` or ``"tile"``: whose ids are remapped.
    constexpr : str
        Name of the parameter for the number of XCDs; empty if the swizzle needs none.
    count : str
        In a persistent kernel, the text of its number of tiles.
    note : str
        Why the program's id is remapped in a kernel that looks persistent; empty otherwise.
    """

    path: Path
    function: str
    original: bytes
    text: bytes
    guarded: Guarded
    grid: Grid
    num_xcds: int
    at: str
    constexpr: str
    count: str = ""
    note: str = ""

    def grid_at(self, launch: Launch, grid: Grid) -> Grid:
        """Grid of what is remapped, at another launch of the kernel whose grid is ``grid``."""
        if self.at == "program":
            return grid
        source = Source(self.path, self.original, self.function)
        found = grid_of_tiles(Definitions(source.code(source.function)), self.count, launch, grid)
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


def rewrite_kernel(
    launch: Launch,
    swizzle: Swizzle,
    *,
    grid: Grid,
    num_xcds: int,
    sizes: Mapping[str, int],
    lattice: Iterable[Point] | None = None,
    at: str = "auto",
) -> Rewritten:
    """Put a swizzle into a kernel.

    Parameters
    ----------
    launch : Launch
        The kernel in hand.
    swizzle : Swizzle
    grid : Grid
        Of the launch, with tiles where the kernel decodes one axis into two.
    num_xcds : int
    sizes : mapping of str to int
        The kernel's sizes, which the swizzle may read.
    lattice : iterable of (Grid, sizes), optional
        Other launches of the same kernel.
    at : {"auto", "program", "tile"}
        Whose ids to remap. By default the tile's where a persistent kernel's loop is understood, else the program's.

    Returns
    -------
    Rewritten

    Raises
    ------
    RewriteError
        If the source does not allow it; names the line.
    NotBijective
        If the swizzle is no permutation of the grid in hand.
    LanguageError
        If the swizzle reads a name that neither grid nor kernel has.
    """
    if at not in AT:
        raise RewriteError(f"at = {at!r}: one of {', '.join(AT)}")
    path = Path(launch.path)
    try:
        original = path.read_bytes()
    except OSError as error:
        raise RewriteError(f"cannot be read ({error.strerror})", path=path) from None
    source = Source(path, original, launch.function)
    calls = [call for call in source.program_ids() if call.axis < len(launch.grid)]
    if not calls:
        raise RewriteError(f"{launch.function} calls no tl.program_id of the launch's axes", path=path)
    loops, note = _loops(source, calls, at)
    if at == "tile" and not loops:
        raise RewriteError(f"{launch.function} has no loop over tiles that starts at its program id", path=path)
    definitions = Definitions(source.code(source.function))
    others = list(lattice) if lattice is not None else None
    if loops:
        grid, others = _tiles_in_hand(source, loops, definitions, launch, grid, others)
    safe = guarded(swizzle, grid, num_xcds, sizes, others)
    found = _edited(source, original, launch, safe, grid, num_xcds, calls, loops, definitions, others or [])
    return replace(found, note=note)


def _loops(source: Source, calls: list[AxisCall], at: str) -> tuple[list[TileLoop], str]:
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
    source: Source,
    original: bytes,
    launch: Launch,
    safe: Guarded,
    grid: Grid,
    num_xcds: int,
    calls: list[AxisCall],
    loops: list[TileLoop],
    definitions: Definitions,
    lattice: list[Point],
) -> Rewritten:
    taken = source.names()
    edits, spelled = Edits(), spelling(source, calls)
    name = source.fresh("swizzle", taken)
    constexpr = _constexpr(source, safe, launch, num_xcds, spelled, edits, taken)
    total = loops[0].count if loops else f"{spelled.language}.num_programs(0)"
    terms = _terms(safe, definitions, launch, grid, lattice, spelled, total, constexpr)
    if loops:
        place_in_loops(source, edits, loops, name, terms, safe.form, taken)
    else:
        place_in_program(source, edits, calls, name, terms, safe.form, taken, len(launch.grid))
    indent = source.module.default_indent
    edits.before[id(source.function)] = helper_statements(safe, name, spelled, grid, num_xcds, indent)
    module = _with_imports(edits.apply(source.module), spelled.missing)
    return Rewritten(
        path=source.path,
        function=source.kernel,
        original=original,
        text=module.bytes,
        guarded=safe,
        grid=grid,
        num_xcds=num_xcds,
        at="tile" if loops else "program",
        constexpr=constexpr,
        count=loops[0].count if loops else "",
    )


def _constexpr(
    source: Source,
    safe: Guarded,
    launch: Launch,
    num_xcds: int,
    spelled: Spelling,
    edits: Edits,
    taken: set[str],
) -> str:
    """Name of the kernel's parameter for the number of XCDs, added where it has none."""
    if not set(safe.form.inputs) & set(XCDS):
        return ""
    if launch.constexprs.get("NUM_XCDS") == num_xcds:
        return "NUM_XCDS"
    name = source.fresh("NUM_XCDS", taken)
    edits.constexpr[id(source.function)] = f"{name}: {spelled.language}.constexpr = {num_xcds}"
    return name


def _terms(
    safe: Guarded,
    definitions: Definitions,
    launch: Launch,
    grid: Grid,
    lattice: list[Point],
    spelled: Spelling,
    total: str,
    constexpr: str,
) -> dict[str, str]:
    """Text, in the kernel, of everything the helper takes besides the coordinates."""
    reads = arguments(safe.form)
    terms = {"num_pids": total}
    for axis, letter in enumerate("xyz"):
        terms[f"num_pid_{letter}"] = f"{spelled.language}.num_programs({axis})"
    counts = [name for name in ("num_pid_m", "num_pid_n") if name in reads]
    terms.update(tile_counts(counts, definitions, launch, grid, lattice, total) if counts else {})
    for name in XCDS:
        terms[name] = constexpr
    for name in reads_of(reads):
        if name not in definitions.parameters:
            raise RewriteError(
                f"the swizzle reads {name}, which is no parameter of {launch.function}: its parameters are "
                f"{', '.join(definitions.parameters)}",
                path=launch.path,
            )
        terms[name] = name
    return terms


def _tiles_in_hand(
    source: Source,
    loops: list[TileLoop],
    definitions: Definitions,
    launch: Launch,
    grid: Grid,
    lattice: list[Point] | None,
) -> tuple[Grid, list[Point] | None]:
    """Return the grid that a persistent kernel's tile ids count, and other such grids."""
    if len({loop.count for loop in loops}) != 1:
        raise source.refuse("loops over different numbers of tiles: one swizzle cannot remap them all", loops[-1].loop)
    count = loops[0].count
    found = grid_of_tiles(definitions, count, launch, grid)
    if found is None:
        raise source.refuse(f"cannot tell how many tiles {count} is from the kernel's parameters", loops[0].loop)
    return found, lattice if found == grid else None


def grid_of_tiles(definitions: Definitions, count: str, launch: Launch, grid: Grid) -> Grid | None:
    """Grid that the tile ids of a persistent kernel count; None where the source does not tell.

    Parameters
    ----------
    definitions : Definitions
        Of the kernel.
    count : str
        Text of the number of tiles.
    launch : Launch
    grid : Grid
        Of the launch; taken as it is if it counts as many.
    """
    values = values_of(launch)
    whole = definitions.in_parameters(count)
    tiles = evaluate(whole, values) if whole is not None else None
    if tiles is None or tiles < 1:
        return None
    if grid.num_pids == tiles and len(grid.launch) == 1:
        return grid
    meanings = [definitions.meaning_of(name) for name in ("num_pid_m", "num_pid_n")]
    m, n = (evaluate(meaning, values) if meaning is not None else None for meaning in meanings)
    return Grid((tiles,), (m, n) if m and n and m * n == tiles else None)


def _with_imports(module: cst.Module, lines: list[str]) -> cst.Module:
    """Add import lines after the file's last import at the top level."""
    if not lines:
        return module
    body = list(module.body)
    at = 0
    for k, statement in enumerate(body):
        if isinstance(statement, cst.SimpleStatementLine):
            first = statement.body[0]
            is_text = isinstance(first, cst.Expr) and isinstance(first.value, cst.SimpleString) and k == 0
            if isinstance(first, cst.Import | cst.ImportFrom) or is_text:
                at = k + 1
    new = [cst.parse_statement(line) for line in lines]
    return module.with_changes(body=[*body[:at], *new, *body[at:]])
