"""The `Swizzle` noun: a candidate, parsed and compiled."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from swizzle_sim.swizzle.form import Form
from swizzle_sim.swizzle.grid import Grid
from swizzle_sim.swizzle.lower import Program, compile_form
from swizzle_sim.swizzle.parse import parse_form
from swizzle_sim.swizzle.permute import permutation_of
from swizzle_sim.swizzle.verdict import Verdict
from swizzle_sim.swizzle.verify import verify
from xcd_model.errors import LanguageError, NotBijective


@dataclass(frozen=True, eq=False)
class Swizzle:
    """A remapping in the closed language.

    Parameters
    ----------
    source : str
        The text as it was given.
    form : Form
        What it was parsed to.
    program : Program
        Its compiled form.
    name : str or None
        What to call it in reports.
    filename : str
        What errors call the text.
    """

    source: str
    form: Form
    program: Program
    name: str | None = None
    filename: str = "<candidate>"

    @classmethod
    def parse(cls, text: str, name: str | None = None, filename: str = "<candidate>") -> Swizzle:
        """Read a candidate.

        Raises
        ------
        LanguageError
            If the text is outside the closed language; see `parse_form`.
        """
        form = parse_form(text, filename)
        return cls(text, form, compile_form(form), name, filename)

    def permutation(self, grid: Grid, num_xcds: int, sizes: Mapping[str, int] | None = None) -> np.ndarray:
        """Return the logical tile of every hardware workgroup.

        Parameters
        ----------
        grid : Grid
        num_xcds : int
        sizes : mapping of str to int, optional
            The kernel's size names.

        Returns
        -------
        tiles : (num_pids,) int64 array

        Raises
        ------
        NotBijective
            If it is no permutation of the grid; the message is the counter-example's.
        LanguageError
            With code ``name`` if the grid or the kernel lacks a name that the candidate uses, ``limit`` if the grid
            is too large for this many steps.
        """
        try:
            run, counterexample = permutation_of(self.program, grid, num_xcds, sizes)
        except LanguageError as error:
            raise error.placed(self.filename, self.source) from None
        if counterexample:
            raise NotBijective(counterexample.message)
        return run.ids

    def verify(
        self,
        grid: Grid,
        num_xcds: int,
        sizes: Mapping[str, int] | None = None,
        lattice: Iterable[tuple[Grid, Mapping[str, int] | None]] | None = None,
    ) -> Verdict:
        """Prove or disprove that it is a bijection; see `verify`."""
        return verify(self, grid, num_xcds, sizes, lattice)
