"""``score``: hit rate, traffic and time of one swizzle, next to those of the launch order; of several, a table."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from swizzle_sim.cli.arguments import (
    Json,
    KernelName,
    Launch,
    ReplayOptions,
    Sizes,
    Swizzles,
    grouped,
    known_gpus,
    load_swizzle,
    offer,
    option,
)
from xcd_model.errors import ReplayError

if TYPE_CHECKING:
    from swizzle_sim.language import Swizzle

_GPUS = "GPU by name, or a TOML file; repeatable; by default mi300x."
Gpus = Annotated[list[str] | None, option("--gpu", metavar="GPU", help=_GPUS, autocompletion=offer(known_gpus))]
OF_ONE = "Of one order"
_SEEDS = "Seeds to try; prints mean and spread."
Seeds = Annotated[int, option("--seeds", help=_SEEDS, panel=OF_ONE, min=1, max=10_000)]
_LENGTHS = "Draws of a kernel's group lengths, its SEED; prints mean and spread of the gain."
Lengths = Annotated[int, option("--lengths", metavar="N", help=_LENGTHS, panel=OF_ONE, min=1, max=1_000)]
_PLOTS = "Draw hit rate over time and per XCD there (PNG)."
Plots = Annotated[Path | None, option("--plots", metavar="FOLDER", help=_PLOTS, panel=OF_ONE)]
_PERFETTO = "Write when each workgroup runs, by XCD and CU, for ui.perfetto.dev."
Perfetto = Annotated[Path | None, option("--perfetto", metavar="FILE", help=_PERFETTO, panel=OF_ONE)]
_UNCERTAIN = "Range of each number over the plausible constants of the model."
Uncertain = Annotated[bool, option("--uncertainty", help=_UNCERTAIN, panel=OF_ONE)]
_DRAWS = "Draws of all constants at once, with --uncertainty."
Draws = Annotated[int | None, option("--draws", help=_DRAWS, panel=OF_ONE, min=2, max=10_000)]


@dataclass(frozen=True)
class Launches:
    """A kernel at sizes, on one GPU or several."""

    kernel: KernelName
    sizes: Sizes = None
    gpu: Gpus = None

    @property
    def each(self) -> list[Launch]:
        """The launch on each GPU."""
        return [Launch(self.kernel, self.sizes, one) for one in dict.fromkeys(self.gpu or ["mi300x"])]


@dataclass(frozen=True)
class OfOne:
    """What is told of one order on one GPU alone."""

    seeds: Seeds = 1
    lengths: Lengths = 1
    uncertainty: Uncertain = False
    draws: Draws = None
    plots: Plots = None
    perfetto: Perfetto = None

    def check(self, replay: str, *, one: bool) -> None:
        """Refuse what cannot be told, or not of more than one order on one GPU."""
        if self.draws is not None and not self.uncertainty:
            raise ReplayError("--draws belongs to --uncertainty: add it")
        if self.perfetto is not None and replay == "lockstep":
            raise ReplayError("--perfetto shows times, and lockstep has none: use --replay timed")
        given = {"--seeds": self.seeds > 1, "--uncertainty": self.uncertainty, "--plots": self.plots is not None}
        given |= {"--lengths": self.lengths > 1, "--perfetto": self.perfetto is not None}
        if not one and (typed := [name for name, is_given in given.items() if is_given]):
            raise ReplayError(f"{', '.join(typed)}: of one swizzle on one GPU; name one of each")


@grouped
def score(
    launch: Launches,
    swizzle: Swizzles = None,
    how: ReplayOptions = ReplayOptions(),
    more: OfOne = OfOne(),
    json: Json = False,
) -> None:
    """Score swizzles next to the launch order, on one or several GPUs; exit 1, and no score, if one is no bijection."""
    from swizzle_sim.cli import scored

    words, launches = list(dict.fromkeys(swizzle or ())), launch.each
    more.check(how.replay, one=len(launches) == 1 >= len(words))
    candidates = [_not_launched(load_swizzle(word), scored.LAUNCHED) for word in words]
    if len(candidates) > 1 or len(launches) > 1:
        all_bijective = scored.compare(candidates, launches, how, json)
    else:
        all_bijective = scored.score_one(candidates, launches[0], how, more, json)
    if not all_bijective:
        raise typer.Exit(1)


def _not_launched(candidate: Swizzle, launched: str) -> Swizzle:
    """Candidate by another name than that of the launch order, which a file may have."""
    return replace(candidate, name=f"{launched} (file)") if candidate.name == launched else candidate
