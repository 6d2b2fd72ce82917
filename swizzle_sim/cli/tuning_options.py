"""Options of the parameter search, and which proposer takes which."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

Template = Annotated[
    list[str] | None,
    typer.Option("--template", metavar="FILE|FAMILIES", help="search: templates to search, such as chunked+group_m."),
]
Sampler = Annotated[
    str | None, typer.Option("--sampler", help="search: auto, tpe, cma-es, random or exhaustive; by default auto.")
]
Evaluations = Annotated[
    int | None,
    typer.Option(
        "--evaluations",
        min=1,
        max=1_000_000,
        help="search: full replays to spend, 400; two-stage: for each template, 60.",
    ),
]
ObjectiveText = Annotated[
    str | None,
    typer.Option("--objective", help="search: l2_hit_rate, time, hbm_bytes, energy, or two with a comma (Pareto)."),
]
AtSizes = Annotated[
    list[str] | None,
    typer.Option("--sizes", metavar="'M=.. N=..'", help="search: another size that counts as much; again for more."),
]
HeldOut = Annotated[
    list[str] | None,
    typer.Option("--held-out", metavar="'M=.. N=..'", help="search: a size to report the best at, never searched."),
]
Tune = Annotated[
    str | None, typer.Option("--tune", metavar="tiles", help="Search tile sizes, warps and stages with GROUP_M.")
]

BOTH = ("evaluations",)  # that two-stage takes as well
ONLY = ("templates", "sampler", "objective", "sizes", "held_out")
TYPED = {"models": "--model", "templates": "--template", "timeout_s": "--timeout"}  # where it is not the key itself


def given(
    templates: list[str] | None,
    sampler: str | None,
    evaluations: int | None,
    objective: str | None,
    sizes: list[str] | None,
    held_out: list[str] | None,
) -> dict[str, Any]:
    """Options that were typed, by the name the proposers know them by."""
    from swizzle_sim.cli.arguments import parse_sizes

    values = {
        "templates": templates or None,
        "sampler": sampler,
        "evaluations": evaluations,
        "objective": objective,
        "sizes": [parse_sizes(words.replace(",", " ").split()) for words in sizes] if sizes else None,
        "held_out": [parse_sizes(words.replace(",", " ").split()) for words in held_out] if held_out else None,
    }
    return {key: value for key, value in values.items() if value is not None}


def check(proposer: str, options: Mapping[str, Any], tuning: Mapping[str, Any]) -> None:
    """Refuse options that belong to another proposer.

    Raises
    ------
    RunError
        Names the options and who takes them.
    """
    from xcd_model.errors import RunError

    llm = [key for key, value in options.items() if value is not None]
    if proposer in ("families", "search") and llm:
        raise RunError(_belong(llm, ("llm", "two-stage"), proposer))
    allowed = {"search": (*BOTH, *ONLY), "two-stage": BOTH}.get(proposer, ())
    if wrong := [key for key in tuning if key not in allowed]:
        raise RunError(_belong(wrong, ("search", "two-stage") if set(wrong) <= set(BOTH) else ("search",), proposer))


def as_typed(keys: Sequence[str]) -> str:
    """Names of options on the command line, by the names that proposers know them by."""
    return ", ".join(TYPED.get(key, f"--{key.replace('_', '-')}") for key in keys)


def _belong(keys: Sequence[str], takers: Sequence[str], proposer: str) -> str:
    verb = "belong" if len(keys) > 1 else "belongs"
    return f"{as_typed(keys)} {verb} to --proposer {' or '.join(takers)}, not to {proposer}: add --proposer {takers[0]}"
