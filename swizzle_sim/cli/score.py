"""``score``: hit rate, traffic and time of one swizzle, next to those of the launch order; of several, a table."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import typer

from swizzle_sim.cli.arguments import (
    Json,
    KernelName,
    Launch,
    OfOne,
    ReplayOptions,
    Sizes,
    Swizzles,
    grouped,
    known_gpus,
    load_swizzle,
    option,
)

if TYPE_CHECKING:
    from swizzle_sim.language import Swizzle

_GPUS = "GPU by name, or a TOML file; repeatable; by default mi300x."


@dataclass(frozen=True)
class Launches:
    """A kernel at sizes, on one GPU or several."""

    kernel: KernelName
    sizes: Sizes = None
    gpu: Annotated[list[str] | None, option("--gpu", metavar="GPU", help=_GPUS, offers=known_gpus)] = None

    @property
    def each(self) -> list[Launch]:
        """The launch on each GPU."""
        return [Launch(self.kernel, self.sizes, one) for one in dict.fromkeys(self.gpu or ["mi300x"])]


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
