"""``assert_bijective``: the one line that a test needs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from swizzle_sim.testing.candidate import Checkable, as_candidate
from swizzle_sim.testing.grids_to_try import Where
from swizzle_sim.testing.settle import settle
from swizzle_sim.testing.trials import Outcome, points_of, try_points
from swizzle_sim.triton_source.prologue import names_in
from xcd_model.integers import is_whole


class BijectionError(AssertionError):
    """A candidate is no bijection; ``outcome`` holds the launch and the counter-example."""

    def __init__(self, outcome: Outcome):
        super().__init__(outcome.message)
        self.outcome = outcome


def assert_bijective(
    candidate: Checkable,
    grids: Iterable[Any] | Any = None,
    xcds: Iterable[int] | Any = None,
    *,
    where: Where = None,
    launch: str = "",
    answer: Iterable[str] | str = (),
    **sizes: int | str | Iterable[int],
) -> None:
    """Assert that a swizzle is a permutation of every grid, or show the smallest on which it is not.

    Parameters
    ----------
    candidate : str, Path, Swizzle or callable
        A Python function whose parameters are named after what they get (``pid``, ``num_pids``, ``num_xcds``,
        ``num_pid_m`` ..., ``grid`` for the launch as a tuple) and that returns the new ``pid`` or a tuple of
        coordinates; a text of the language or a family's spec; a file with a text; ``"file.py::function"``, or a
        Triton function itself, whose program-id prologue is read from its file and never run.
    grids : iterable, optional
        Grids to try, each a `Grid`, an integer, a tuple of sides or a text such as ``"64x64"``. By default every small
        grid of the candidate's kind, and larger ones of awkward shape.
    xcds : iterable of int, or int, optional
        XCD counts; by default 1, 2, 3, 4, 6 and 8.
    where : str or callable, optional
        Only launches on which this holds are tried: a condition such as ``"num_pids % num_xcds == 0"``, or
        ``f(grid, num_xcds)``.
    launch : str, optional
        Launch grid as an expression of the kernel's sizes, such as ``"cdiv(M, BLOCK_M) * cdiv(N, BLOCK_N)"``
        (row-major tiles) or ``"cdiv(M, 64), cdiv(N, 64)"`` (two axes). Sizes without a value then vary, whole tiles
        and ragged. By default that of the Triton file, where it has one.
    answer : str or iterable of str, optional
        Names that hold the tile in a Triton kernel, in the order of the grid's sides.
    **sizes : int, str or iterable of int
        Values of other names that the candidate reads: a number, an expression over the grid's counts such as
        ``GRID_MN="num_pids"``, or several numbers to try.

    Raises
    ------
    BijectionError
        An `AssertionError`. The message names grid, XCD count and counter-example: two ids that compute one tile, a
        tile that no workgroup computes, an id out of range, or the operation that a 32-bit GPU integer cannot do.
    LanguageError, UnknownName, OptionError, SizeError
        If the candidate or an argument cannot be read.

    Notes
    -----
    Launches are tried in the order of their size, so the first that fails is the smallest. A Python function computes
    in Python's integers: that a value overflows 32 bits, or that ``//`` of opposite signs rounds otherwise on a GPU, is
    found in texts and Triton functions only.
    """
    __tracebackhide__ = True  # pytest shows the caller's line
    values = {name: _value(value) for name, value in sizes.items()}
    found, options = as_candidate(candidate, values, names_in(answer), launch)
    if xcds is not None:
        options = replace(options, xcds=tuple(xcds) if isinstance(xcds, Iterable) else (xcds,))
    given = [grids] if isinstance(grids, str) or is_whole(grids) else grids
    outcome = try_points(found, points_of(found, options, given, where))
    if not outcome.holds and grids is None:
        outcome = settle(found, outcome, options, where)  # for the message
    if not outcome.holds:
        raise BijectionError(outcome)


def _value(value: Any) -> int | str | tuple[int, ...]:
    if isinstance(value, str):
        return value
    return int(value) if hasattr(value, "__index__") else tuple(int(one) for one in value)
