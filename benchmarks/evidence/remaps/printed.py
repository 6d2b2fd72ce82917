"""The paper's printed formulas as part of the corpus: their sizes put in terms of the launch grid."""

from __future__ import annotations

from ..paper.formulas import LISTINGS
from .corpus import Remap

_LINE = {"M": "num_pids"}
_PLANE = {"BLOCK_SIZE_M": "1", "BLOCK_SIZE_N": "1", "BLOCK_SIZE_X": "1", "BLOCK_SIZE_Y": "1"}
_SIDES = {"M": "num_pid_x", "N": "num_pid_y", "Nx": "num_pid_x", "Ny": "num_pid_y"}
# Conditions that suffice; the paper's page has those that are exact.
_RIGHT = {
    6: "num_pids <= 8",
    7: "num_pids <= 8",
    8: "num_pids == 1",
    9: "num_pid_x == 1",
    10: "num_pids == 1",
    11: "num_pids % 8 == 0",
    12: "num_pid_y == 1",
    13: "",  # a power of four of tiles, which no condition of the language says
}


def _of_figure(figure: int) -> Remap:
    text = LISTINGS[figure].lstrip("\n")
    one_axis = figure in (6, 7, 13)
    known = _LINE if one_axis else {**_SIDES, **_PLANE}
    sizes = {name: value for name, value in known.items() if _reads(text, name)}
    return Remap(
        name=f"figure {figure}",
        source="SwizzlePerf, arXiv 2508.20258",
        text=text,
        right=_RIGHT[figure],
        sizes=sizes,
    )


def _reads(text: str, name: str) -> bool:
    from swizzle_sim.language import parse_form  # noqa: PLC0415 - of one function

    return name in parse_form(text).inputs


PRINTED = tuple(_of_figure(figure) for figure in sorted(LISTINGS))
