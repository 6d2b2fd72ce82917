"""Result of a verification: a `Verdict` and its `Counterexample`, and the three words for what is known.

*proved*: on every launch of the domain that is named; *refuted*: a counter-example is shown; *tested*: on so many
launches, the largest of so many workgroups, and nothing is known of others.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

PROVED, TESTED, REFUTED = "proved", "tested", "refuted"
EVERY_GRID = "every grid"  # proved; what is only tested holds on
EVERY_GRID_TRIED = "every grid tried"
THIS_GRID_ONLY = "this grid only"
NOWHERE = "nowhere"
UNNAMED = "no simple condition"


@dataclass(frozen=True)
class Counterexample:
    """Why a candidate is not a permutation of one grid.

    Parameters
    ----------
    code : str
        One of ``collision``, ``out-of-range``, ``overflow``, ``division-by-zero``, ``signed-division``, ``shift``
        and ``step-limit``; stable.
    message : str
        A sentence with the grid and the XCDs in it.
    pids : tuple of int
        The hardware ids at fault: two that collide, or the one that fails.
    tile : int or None
        The logical tile that both compute.
    missing : int or None
        The first tile that no workgroup computes.
    distinct_tiles : int
        Tiles that are computed; 0 if evaluation stopped.
    line : int
        Line of the text at fault; 0 if none.
    """

    code: str
    message: str
    pids: tuple[int, ...]
    tile: int | None = None
    missing: int | None = None
    distinct_tiles: int = 0
    line: int = 0


@dataclass(frozen=True)
class Verdict:
    """Whether a candidate is a bijection, and where.

    Parameters
    ----------
    bijective : bool
        At the target grid. Decided by trying every workgroup.
    domain : str
        ``every grid`` (proved), ``every grid tried``, a condition such as ``num_pids % num_xcds == 0`` that is
        sufficient (if ``status`` is proved; on every grid tried if it is tested), ``this grid only``, ``nowhere``, or
        ``no simple condition`` where other grids passed and no condition known to `lattice` separates them. If
        ``complete`` is false it is never ``every grid tried`` nor a condition that was tested: ``this grid only`` if
        bijective here, otherwise ``nowhere`` (none tried passed) or ``no simple condition``.
    counterexample : Counterexample or None
        Of the target grid.
    distinct_tiles : int
        Tiles of the target grid that are computed.
    n_workgroups : int
        Of the target grid.
    tested, passed : int
        Grids times XCD counts, the target included.
    lattice_counterexample : Counterexample or None
        Of the first other grid that fails.
    complete : bool
        Whether every other grid was tried. False if the step budget of the lattice was exhausted; the grid on which
        that happened is not in ``tested``.
    status : {"proved", "tested", "refuted"}
        ``refuted`` if it is no bijection of the target grid. Otherwise what ``domain`` rests on: a proof for every
        launch of it, or the launches tried. The target grid itself is proved in both cases: all of it was tried.
    largest : int
        Workgroups of the largest launch tried.
    covers : str
        Sizes for which the proof holds, where there is one: beyond them a value may leave 32 bits.
    """

    bijective: bool
    domain: str
    counterexample: Counterexample | None
    distinct_tiles: int
    n_workgroups: int
    tested: int
    passed: int
    lattice_counterexample: Counterexample | None = None
    complete: bool = True
    status: str = TESTED
    largest: int = 0
    covers: str = ""

    def as_dict(self) -> dict:
        """Return plain data for JSON; the keys are stable."""
        return asdict(self)
