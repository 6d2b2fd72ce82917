"""``score``: hit rate, traffic and time of one swizzle, next to those of the launch order; of several, a table."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

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

_GPUS = "GPU by name, or a TOML file; repeatable; by default mi300x."


@dataclass(frozen=True)
class Launches:
    """A kernel at sizes, on one GPU or several."""

    kernel: KernelName
    sizes: Sizes = None
    gpu: Annotated[list[str] | None, option("--gpu", metavar="GPU", help=_GPUS, offers=known_gpus)] = None


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

    words = list(dict.fromkeys(swizzle or ()))
    launches = [Launch(launch.kernel, launch.sizes, one) for one in dict.fromkeys(launch.gpu or ["mi300x"])]
    more.check(one=len(launches) == 1 >= len(words))
    candidates = [load_swizzle(word) for word in words]
    for at, one in enumerate(candidates):
        if one.name == scored.LAUNCHED:  # a file may have the name of the launch order
            candidates[at] = replace(one, name=f"{one.name} (file)")
    if len(candidates) > 1 or len(launches) > 1:
        all_bijective = scored.compare(candidates, launches, how, json)
    else:
        all_bijective = scored.score_one(candidates, launches[0], how, more, json)
    if not all_bijective:
        raise typer.Exit(1)
