"""`Prologue`: what a function computes its tile with, as a text of the language, and what is known beside it."""

from __future__ import annotations

from dataclasses import dataclass

from swizzle_sim.triton_source.mapped_text import MappedText


class Premise(str):
    """Supposition under which a proof holds; any other leaves what is found tested."""


@dataclass(frozen=True)
class Prologue:
    """What a function computes its tile with.

    Parameters
    ----------
    text : MappedText
        In the language; its last lines assign the coordinates.
    function : str
    line : int
        Of the function.
    axes : int
        Axes of the launch whose program id it reads.
    launch : str
        Launch grid as an expression of the kernel's sizes, where the source has it (``num_pid_m = tl.cdiv(M, B)``);
        empty otherwise.
    parameters : tuple of str
        Of the function.
    surplus : MappedText or None
        Text whose ``pid`` is 1 in a workgroup that returns at once, 0 in one with a tile; None where none returns.
    extents : tuple of str
        What each coordinate counts up to, where the coordinates are handed on as one number.
    free : tuple of str
        Other names that it takes a value from: fields of a record, names before statements that stand alone.
    defaults : tuple of str
        Parameters of a function that returns its tile for which it has a value, and a caller may have another.
    takes_id : bool
        Whether it reads no program id: its first parameter is one.
    fixed : str
        A count of tiles that is the same whatever the launch, as its sizes are constants of the file.
    assumed : tuple of str
        What is supposed of the launch or the kernel, and not read.
    strides : tuple of str
        Arguments that have to keep apart what is stored of two tiles.
    fixed_grid : tuple of int
        Tiles of the one launch for which constants of the file make the kernel, one number where they count one side
        alone; empty where they do not tell.
    is_wide : bool
        Whether it casts to 64 bits, in which no value of the text is held.
    counted : MappedText or None
        The text in the grid's own counts of tiles, where it reads its sizes for nothing else: what a proof speaks of.
    unsure : str
        What to say where it fails, as its tiles may be others than the names of its counts say.
    loop : str
        Where a loop over tiles ends, in words; where that is not their number, `surplus` is below 0.
    place : MappedText or None
        Where a kernel stores, as one number, where that seems to be less than the tile; see `place_of`.
    """

    text: MappedText
    function: str
    line: int
    axes: int
    launch: str
    parameters: tuple[str, ...]
    surplus: MappedText | None = None
    extents: tuple[str, ...] = ()
    free: tuple[str, ...] = ()
    defaults: tuple[str, ...] = ()
    takes_id: bool = False
    fixed: str = ""
    fixed_grid: tuple[int, ...] = ()
    counted: MappedText | None = None
    assumed: tuple[str, ...] = ()
    strides: tuple[str, ...] = ()
    is_wide: bool = False
    unsure: str = ""
    loop: str = ""
    place: MappedText | None = None
