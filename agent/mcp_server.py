"""A Model Context Protocol server: `check`, `score`, `show` and `optimize` for coding agents, in small answers.

The keys are those of ``--json``; what an agent does not reason with, such as raw counters, is left out, and the misses
by kind of the bottleneck report are in. No text of a swizzle is executed; kernel files are read below the folder that
the server was started in, and captured as by every command.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

from swizzle_sim.base.release import install_hint, version
from swizzle_sim.language import Grid, Verdict, verify
from swizzle_sim.pricing.scores import Score
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.report.bottleneck import bottleneck_of, changes_of
from swizzle_sim.search.advice import advise_run
from swizzle_sim.search.bench import score_on
from swizzle_sim.search.candidates import LAUNCH_ORDER, Candidate
from swizzle_sim.search.judge import Judge, as_candidate
from swizzle_sim.search.ranking import TIME
from swizzle_sim.search.strategies.families import optimize as try_families
from swizzle_sim.workload.kernels import is_user_kernel
from xcd_model import gpu as load_gpu
from xcd_model.errors import ModelError, SwizzleSimError

from .contexts import access_summary, language_card

FIGURES = ("l2_hit_rate", "bound_l2_hit_rate", "l2_misses", "time_us", "speedup", "limiter")
SHOWN = 3  # orders of an optimization
INSTRUCTIONS = (
    "Find an order of workgroups (a swizzle) by which a GPU kernel hits its L2 more often. First show a kernel, then "
    "check and score orders; optimize tries the known families. All figures are simulated."
)


def check(text: str, grid: str, num_xcds: int = 8) -> dict[str, Any]:
    """Check that a swizzle is a bijection of a grid, such as 4096, 64x64 or 8x16x4, and say where else."""
    return _verdict(verify(as_candidate(text).swizzle, Grid.parse(grid), num_xcds))


def show(kernel: str, sizes: dict[str, int] | None = None, gpu: str = "mi300x") -> dict[str, Any]:
    """What a kernel's workgroups share, how far its launch order is from the bound, and how a swizzle is written."""
    scorer = _scorer(kernel, sizes, gpu)
    said = " ".join(scorer.kernel.sharing.split())
    return {
        "problem": dict(scorer.kernel.problem),
        **access_summary(scorer),
        **({"sharing": said} if said else {}),
        "baseline": _figures(scorer.baseline),
        "language": language_card(scorer.kernel),
    }


def score(kernel: str, text: str, sizes: dict[str, int] | None = None, gpu: str = "mi300x") -> dict[str, Any]:
    """What a swizzle (a text, or a family's name) is worth beside the launch order, and why its misses are misses."""
    scorer = _scorer(kernel, sizes, gpu)
    judge, swizzle = Judge(scorer), as_candidate(text).swizzle
    verdict = scorer.verify(swizzle)
    if not verdict.bijective:
        return {"verdict": _verdict(verdict)}
    order = scorer.permutation(swizzle)
    found = score_on(scorer, order)
    attempts = [judge.judge(one, i) for i, one in enumerate([LAUNCH_ORDER, Candidate("it", swizzle.source, "given")])]
    times = judge.ranking.main == TIME
    report = bottleneck_of(scorer, order, found, times=times)
    launched = bottleneck_of(scorer, scorer.permutation(LAUNCH_ORDER.swizzle), scorer.baseline, times=times)
    advice = advise_run(scorer, judge.ranking, attempts, "")
    return {
        "verdict": _verdict(verdict),
        "score": _figures(found),
        "baseline": _figures(scorer.baseline),
        "misses_pct": {"score": report["misses_pct"], "baseline": launched["misses_pct"]},
        "limit": report["limit"],
        "advice": {"verdict": advice.verdict, "what": advice.what, "why": advice.why},
        "changes": changes_of(launched, report),
    }


def optimize(kernel: str, out: str, sizes: dict[str, int] | None = None, gpu: str = "mi300x") -> dict[str, Any]:
    """Try the known families into a new run folder; the best of them, their texts, and how many were tried."""
    scorer = _scorer(kernel, sizes, gpu)
    run = try_families(scorer.kernel, scorer.gpu, _below(out), scorer=scorer)
    best = [one for one in run.ranked if one.number][:SHOWN]
    advice = advise_run(scorer, run.ranking, run.attempts, str(run.folder))
    return {
        "run": str(run.folder),
        "advice": {"verdict": advice.verdict, "what": advice.what, "why": advice.why},
        "tried": len(run.attempts),
        "baseline": _figures(scorer.baseline),
        "best": [{"name": one.name, "source": one.source, "score": _figures(one.score)} for one in best if one.score],
    }


def _scorer(kernel: str, sizes: dict[str, int] | None, gpu: str) -> Scorer:
    from swizzle_sim.cli.arguments import load_kernel

    device = load_gpu(gpu)
    name = str(_below(kernel)) if is_user_kernel(kernel) else kernel
    words = [f"{key}={value}" for key, value in (sizes or {}).items()]
    return Scorer(load_kernel(name, words, device.arch), device)


def _below(path: str) -> Path:
    """A path below the working directory."""
    found = Path(path).resolve()
    if not found.is_relative_to(Path.cwd()):
        raise ModelError(f"{path}: lies outside {Path.cwd()}, where this server was started", code="mcp")
    return found


def _figures(score: Score) -> dict[str, Any]:
    values = {name: getattr(score, name) for name in FIGURES}
    if score.balance is not None:
        values["makespan_over_ideal"] = score.balance.over_ideal
    return {key: float(f"{value:.6g}") if isinstance(value, float) else value for key, value in values.items()}


def _verdict(verdict: Verdict) -> dict[str, Any]:
    why = verdict.counterexample or verdict.lattice_counterexample
    found = {"bijective": verdict.bijective, "domain": verdict.domain, "status": verdict.status}
    return {**found, **({"counterexample": why.message} if why else {})}


def server() -> Any:
    """The server, not yet running."""
    try:
        from mcp.server.mcpserver import MCPServer
        from mcp.server.mcpserver.exceptions import ToolError
    except ImportError as error:
        raise ModelError(f"the server needs the mcp package: {install_hint('mcp')}", code="extra") from error

    def told(tool: Any) -> Any:
        @functools.wraps(tool)
        def with_errors(*args: Any, **kwargs: Any) -> Any:
            try:
                return tool(*args, **kwargs)
            except SwizzleSimError as error:  # says what to do; anything else is a defect
                raise ToolError(str(error)) from error

        return with_errors

    made = MCPServer("swizzle-sim", instructions=INSTRUCTIONS, version=version(), log_level="ERROR")
    for tool in (check, show, score, optimize):
        made.tool(structured_output=False)(told(tool))
    return made


def serve() -> None:
    """Serve on standard input and output until the client hangs up."""
    server().run("stdio")
