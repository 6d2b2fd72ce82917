"""Options of ``optimize`` by what they belong to: the run, the parameter search, the language models."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

import typer

from swizzle_sim.cli.arguments import (
    REPLAY_PANEL,
    REPLAY_WORDS,
    Compile,
    Jitter,
    Seed,
    Verbose,
    known_kernels,
    option,
    parse_sizes,
    run_folders,
)
from xcd_model.errors import RunError, UnknownName
from xcd_model.files import read_text

tomllib: Any = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")

LLM, SEARCH = "Options of --proposer llm, direct and two-stage", "Options of --proposer search"


EVERYDAY = ("--model", "--max-minutes", "--evaluations", "--tune")
SHOWN = (*EVERYDAY, "--llm", "--api-base", "--max-dollars")  # the other options of models are keys of --llm's file


def _llm(name: str, **settings: Any) -> Any:
    return option(name, panel=None if name in EVERYDAY else LLM, hidden=name not in SHOWN, **settings)


def _search(name: str, **settings: Any) -> Any:
    return option(name, panel=None if name in EVERYDAY else SEARCH, **settings)


def _read_llm(ctx: typer.Context, file: Path | None) -> Path | None:
    """Take what a file says of the models as defaults of this command's options."""
    if file is None:
        return None
    try:
        given = tomllib.loads(read_text(file))
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise RunError(f"--llm {file}: {getattr(error, 'strerror', None) or error}") from None
    known = {one.name: one for one in ctx.command.params if one.name in LLM_KEYS}
    for key in given:
        if key not in known:
            raise UnknownName(f"key of {file}", key, sorted(known))
    ctx.default_map = {**(ctx.default_map or {}), **given}
    return file


ApiBase = Annotated[str | None, _llm("--api-base", metavar="URL", help="Base URL of an OpenAI-compatible server.")]
Details = Annotated[
    Path | None,
    _llm("--llm", metavar="FILE.toml", help="Details of the models: docs/agent.md.", callback=_read_llm, is_eager=True),
]
Candidates = Annotated[
    int | None, _llm("--candidates", metavar="N", min=1, max=100, help="Candidates an iteration, by default 1.")
]
MaxDollars = Annotated[float | None, _llm("--max-dollars", metavar="USD", min=0, help="Stop after spending that many.")]
Temperature = Annotated[float | None, _llm("--temperature", metavar="T", min=0, max=2, help="Sampling temperature.")]
Prices = Annotated[Path | None, _llm("--prices", metavar="FILE", help="Price table in place of the shipped one.")]
Program = Annotated[Path | None, _llm("--program", metavar="FILE", help="Program that tune-prompt saved.")]

Tune = Annotated[
    str | None,
    _search(
        "--tune",
        metavar="[LEVER,..]",
        help="Search order, configuration, options: each alone and together; by default the first two. Says which "
        "lever brings what.",
        offers=("order", "configuration", "options"),
    ),
]

Proposer = Annotated[
    str,
    option(
        "--proposer",
        metavar="NAME|FILE.py:FUNCTION",
        help="Source of candidates: families, search, ceiling (permutations), llm (two-stage where replays are cheap, "
        "else direct), or a strategy of your own.",
        offers=("families", "search", "ceiling", "llm", "direct", "two-stage"),
    ),
]

LEVERS = "order,configuration"  # of --tune, where none are typed
BOTH = ("evaluations",)  # options of the search that two-stage takes as well
ONLY = ("templates", "sizes", "held_out")
TYPED = {"models": "--model", "templates": "--template", "timeout_s": "--timeout"}  # where the key has another name


@dataclass(frozen=True)
class RunOptions:
    """Options of every run: how it counts, where it is stored."""

    replay: Annotated[
        str | None,
        option(
            "--replay",
            metavar="REPLAY|RUN",
            help="Replay that the counts come from: timed (default) or lockstep; or a run of llm to repeat.",
            offers=lambda: [*REPLAY_WORDS, *run_folders()],
            panel=REPLAY_PANEL,
        ),
    ] = None
    objective: Annotated[
        str | None,
        option(
            "--objective",
            metavar="NAME",
            help="time, l2_hit_rate, hbm_bytes, energy, balance (makespan over ideal), or two with a comma (Pareto); "
            "by default time where the times of the GPU rank orders, else l2_hit_rate.",
            offers=("time", "l2_hit_rate", "hbm_bytes", "energy", "balance"),
        ),
    ] = None
    verbose: Verbose = False
    seed: Seed = 0
    jitter: Jitter = 0.0
    out: Annotated[
        Path | None, option("--out", "-o", metavar="RUN", help="Run folder to make; by default runs/KERNEL-GPU-NNN.")
    ] = None
    resume: Annotated[
        Path | None,
        option("--resume", metavar="RUN", help="Run folder of an interrupted run to go on with.", offers=run_folders),
    ] = None
    threads: Annotated[
        int | None, option("--threads", metavar="N", min=1, max=256, help="By default one a core.", panel=REPLAY_PANEL)
    ] = None
    uncertainty: Annotated[
        bool,
        option(
            "--uncertainty/--no-uncertainty",
            help="Test whether uncertain constants could change the ranking.",
            panel=REPLAY_PANEL,
        ),
    ] = True
    compile: Compile = True
    report: Annotated[
        bool,
        option(
            "--report/--no-report",
            help="Draw report.html and its pictures; `swizzle-sim report RUN` draws them later.",
            envvar="SWIZZLE_SIM_REPORT",
            panel=REPLAY_PANEL,
        ),
    ] = True


@dataclass(frozen=True)
class SearchOptions:
    """Options of the parameter search."""

    template: Annotated[
        list[str] | None,
        _search(
            "--template", metavar="FILE|FAMILIES", help="Templates to search, such as chunked+group_m; repeatable."
        ),
    ] = None
    evaluations: Annotated[
        int | None,
        _search(
            "--evaluations",
            metavar="N",
            min=1,
            max=1_000_000,
            help="Full replays to spend, by default 400; two-stage: for each template, 60; --tune: for each lever, 24; "
            "a strategy of your own: 400.",
        ),
    ] = None
    at_sizes: Annotated[
        list[str] | None, _search("--sizes", metavar="'M=.. N=..'", help="Another size to optimize for; repeatable.")
    ] = None
    held_out: Annotated[
        list[str] | None,
        _search("--held-out", metavar="'M=.. N=..'", help="Size to report the best at, never searched; repeatable."),
    ] = None
    tune: Tune = None

    def given(self) -> dict[str, Any]:
        """Options that were typed, by the names that proposers use."""
        values = {
            "templates": self.template or None,
            "evaluations": self.evaluations,
            "sizes": _several_sizes(self.at_sizes),
            "held_out": _several_sizes(self.held_out),
        }
        return {key: value for key, value in values.items() if value is not None}


@dataclass(frozen=True)
class LlmOptions:
    """Options of the proposers that ask language models."""

    model: Annotated[
        list[str] | None, _llm("--model", metavar="MODEL", help="DSPy model string, such as openai/gpt-4o; repeatable.")
    ] = None
    api_base: ApiBase = None
    details: Details = None
    context: Annotated[
        str | None,
        _llm(
            "--context",
            metavar="NAME|FILE.py:FUNCTION",
            help="Hardware description in the prompt: aware, unaware, overload, or your own.",
            offers=("aware", "unaware", "overload"),
        ),
    ] = None
    docs: Annotated[Path | None, _llm("--docs", metavar="FILE", help="Document for --context overload.")] = None
    iterations: Annotated[int | None, _llm("--iterations", metavar="N", min=1, max=10_000, help="By default 5.")] = None
    candidates: Candidates = None
    max_tokens: Annotated[
        int | None, _llm("--max-tokens", metavar="N", min=1, help="Stop after spending that many.")
    ] = None
    max_dollars: MaxDollars = None
    max_minutes: Annotated[
        float | None,
        option(
            "--max-minutes",
            metavar="MIN",
            min=0,
            help="Stop after that time; families and a strategy of your own too.",
            panel=REPLAY_PANEL,
        ),
    ] = None
    temperature: Temperature = None
    reply_tokens: Annotated[
        int | None, _llm("--reply-tokens", metavar="N", min=1, help="Most tokens of one reply.")
    ] = None
    timeout: Annotated[
        float | None, _llm("--timeout", metavar="S", min=0.1, help="Of one request, in seconds; by default 300.")
    ] = None
    tries: Annotated[
        int | None, _llm("--tries", metavar="N", min=1, max=20, help="Requests for one question, by default 4.")
    ] = None
    structured: Annotated[bool, _llm("--structured", help="Constrain answers by a JSON schema.")] = False
    image: Annotated[bool, _llm("--image", help="Show the model a picture of the best mapping.")] = False
    no_compare: Annotated[
        bool, _llm("--no-compare", help="Leave out the families and the search that stand beside the models' orders.")
    ] = False
    program: Program = None
    prices: Prices = None

    def given(self) -> dict[str, Any]:
        """Options that were typed, by the names that proposers use."""
        names = {"model": "models", "timeout": "timeout_s"}
        values = {names.get(key, key): value for key, value in vars(self).items() if key != "details"}
        return {key: value for key, value in values.items() if value not in (None, False, [])}


LLM_KEYS = frozenset(one.name for one in fields(LlmOptions)) - {"details"}


def check_options(proposer: str, llm: Mapping[str, Any], search: Mapping[str, Any]) -> None:
    """Refuse options that belong to another proposer."""
    own = proposer.endswith(".py") or proposer.rpartition(":")[0].endswith(".py")
    allowed: tuple[str, ...] = ("max_minutes",) if proposer == "families" or own else ()
    strange = [key for key in llm if key not in allowed]
    if (proposer in ("families", "search", "ceiling") or own) and strange:
        raise RunError(_belong(strange, ("llm", "two-stage"), proposer))
    allowed = {"search": (*BOTH, *ONLY), "two-stage": BOTH, "ceiling": BOTH}.get(proposer, BOTH if own else ())
    if wrong := [key for key in search if key not in allowed]:
        raise RunError(_belong(wrong, ("search", "two-stage") if set(wrong) <= set(BOTH) else ("search",), proposer))


def as_typed(keys: Sequence[str]) -> str:
    """Names of options on the command line, by the names that proposers use."""
    return ", ".join(TYPED.get(key, f"--{key.replace('_', '-')}") for key in keys)


def _belong(keys: Sequence[str], takers: Sequence[str], proposer: str) -> str:
    verb = "belong" if len(keys) > 1 else "belongs"
    return f"{as_typed(keys)} {verb} to --proposer {' or '.join(takers)}, not to {proposer}: add --proposer {takers[0]}"


def _several_sizes(texts: Sequence[str] | None) -> list[dict[str, int]] | None:
    return [parse_sizes(text.replace(",", " ").split()) for text in texts] if texts else None


def with_levers(words: Sequence[str]) -> list[str]:
    """Words of a command line, with the levers that ``--tune`` has where none follow it."""
    found = list(words)
    if "--tune" in found:
        at = found.index("--tune") + 1
        after = found[at] if at < len(found) else "-"
        if after.startswith("-") or set(after) & set("=./:") or after in known_kernels():
            found.insert(at, LEVERS)
    return found
