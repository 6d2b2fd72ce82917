"""``policy``: the fewest orders for many sizes of one kernel, and a proved rule that chooses between them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from swizzle_sim.cli.arguments import (
    Compile,
    Json,
    Launch,
    Swizzles,
    grouped,
    load_fitting,
    load_kernel,
    load_swizzle,
    option,
)
from swizzle_sim.cli.output import line, print_json, say, simulated, table
from swizzle_sim.cli.sweeping import Rows, SweepRun
from xcd_model.errors import SearchError

if TYPE_CHECKING:
    from swizzle_sim.search.policy.rule import Policy
    from swizzle_sim.search.policy.sizes import Case, Size
    from swizzle_sim.workload.kernels import Kernel
    from xcd_model import Gpu

Texts = Sequence[tuple[str, str]]  # orders by name
_OVER = "Sizes that vary: M,N each on its own, M+N together."
_VALUES = "1024,2048 or 1024..8192 step 1024 or powers 1024..8192; one for all parts of --over, or one each."
_CALLS = "CSV with a column for each size, and calls: how often each is launched."
_FUNCTION = "Kernel of a recording, or of a folder of recordings, given as KERNEL."


@dataclass(frozen=True)
class At:
    """Sizes of a policy."""

    over: Annotated[str | None, option("--over", metavar="NAME[+NAME][,NAME]", help=_OVER)] = None
    values: Annotated[list[str] | None, option("--values", help=_VALUES)] = None
    calls: Annotated[Path | None, option("--calls", metavar="FILE", help=_CALLS)] = None
    function: Annotated[str, option("--function", metavar="NAME", help=_FUNCTION)] = ""


@dataclass(frozen=True)
class Among:
    """Orders that a policy chooses among, and how far it goes."""

    swizzle: Swizzles = None
    orders: Annotated[int, option("--orders", min=1, max=64, help="Published orders to screen in lockstep.")] = 16
    finalists: Annotated[int, option("--finalists", min=1, max=16, help="Of them, replayed in time.")] = 6
    lose: Annotated[float, option("--lose", metavar="PERCENT", min=0, max=100, help="Of the best, at any size.")] = 1.0
    depth: Annotated[int, option("--depth", min=0, max=3, help="Conditions on the way to an order, at most.")] = 3
    compile: Compile = True


@grouped
def policy(
    launch: Launch, at: At = At(), among: Among = Among(), run: SweepRun = SweepRun(), json: Json = False
) -> None:
    """Choose the fewest orders for many sizes of a kernel, by a rule that is proved and emitted.

    KERNEL may be a recording, or a folder of them: the sizes are its launches, weighted by their counts.
    """
    from swizzle_sim.language.lattice import kind_of_grid
    from swizzle_sim.search.policy.emit import document, write_policy
    from swizzle_sim.search.policy.rule import choose, proved_orders
    from xcd_model import gpu as load_gpu

    device = load_gpu(launch.gpu)
    folder = run.folder("policy")
    sizes, work = _sizes(launch, at, device, among.compile)
    with run.evaluating("policy", "points") as (rows, _, progress):
        replay = partial(_cases, work, device, sizes, among.compile, rows)
        texts = _screened(replay, _candidates(work, device, among), among.finalists, device)
        proofs = partial(progress, what="policy, orders proved")
        orders, unproved = proved_orders(texts, kind_of_grid(work.grid), device, among.finalists, proofs)
        tried = {*unproved, *(one.name for one in orders)}
        cases = replay("timed", [one for one in texts if one[0] in tried])
    found = choose(work.name, device, "timed", cases, orders, allowed=among.lose, depth=among.depth)
    files = write_policy(found, folder) if folder else []
    if json:
        more = {"unproved": unproved, "left_out": len(sizes) - len(cases)}
        print_json({**document(found), "tried": [one.name for one in orders], **more})
        return
    _print(found, unproved)
    if folder:
        print(f"written: {folder}/ ({', '.join(files)})")


def _sizes(launch: Launch, at: At, device: Gpu, compile: bool) -> tuple[list[Size], Kernel]:
    """Sizes to ask for, and the kernel at the one of most workgroups, or of most calls, whose orders are tried."""
    from swizzle_sim.search.policy.sizes import Size, grid_of, recorded_sizes, table_of_calls
    from swizzle_sim.search.sweep import read_sizes
    from swizzle_sim.workload.kernels import declared_name, kernel_names

    path = Path(launch.kernel)
    is_folder = path.is_dir() and launch.kernel not in kernel_names()  # a folder called like a kernel does not hide it
    if is_folder or (path.suffix == ".json" and not declared_name(launch.kernel)):
        if at.over or at.calls or launch.sizes:
            raise SearchError(f"{path} is recorded: its launches are the sizes; name one, {path}:NAME, to vary it")
        found = recorded_sizes(path, at.function)
        return found, load_fitting(max(found, key=lambda one: one.calls).kernel, None, device, compile)
    work = load_kernel(launch.kernel, launch.sizes, device.arch)
    if (at.calls is None) == (at.over is None) or (at.over is None) != (at.values is None):
        raise SearchError("say which sizes: --over M,N --values 1024..8192, or --calls FILE")
    if work.file.endswith(".npz"):
        raise SearchError(f"{work.name} is a recorded trace of one size: a policy needs several", code="sweep")
    if at.calls is not None:
        pairs = table_of_calls(at.calls, work.problem)
    else:
        pairs = [
            (one, 1.0) for one in grid_of(work.problem, at.over or "", [read_sizes(one) for one in at.values or ()])
        ]
    name, largest = work.file or work.name, max(pairs, key=lambda one: sum(map(float, one[0].values())))[0]
    words = [f"{size}={value}" for size, value in {**work.problem, **largest}.items()]
    sizes = [Size(name, {**work.problem, **one}, calls) for one, calls in pairs]
    return sizes, load_fitting(name, words, device, compile)


def _candidates(work: Kernel, device: Gpu, among: Among) -> Texts:
    """Orders by name and text: those asked for, or else the first of the published families."""
    from swizzle_sim.search.candidates import shortlist

    if among.swizzle:
        return [(one.name or f"candidate {i}", one.source) for i, one in enumerate(map(load_swizzle, among.swizzle), 1)]
    found = [(one.name, one.source) for one in islice(shortlist(work, device), among.orders)]
    if not found:
        raise SearchError(f"no family orders the workgroups of {work.name} on {device.name}: give a --swizzle")
    return found


def _cases(
    work: Kernel, device: Gpu, sizes: Sequence[Size], compile: bool, rows: Rows, replay: str, orders: Texts
) -> list[Case]:
    """Every size replayed under some orders; an error where none could be."""
    from swizzle_sim.rewrite.guard import FOR_ALL_SIZES
    from swizzle_sim.rewrite.price import scored_as_compiled
    from swizzle_sim.search.policy.sizes import cases_of, judged
    from swizzle_sim.search.sweep import compiler

    common = {"is_file": bool(work.file), "gpu": device.as_dict(), "replay": replay}
    common |= {"swizzles": [list(one) for one in orders]} | ({"compile": compiler()} if compile else {})
    points = [{"kernel": one.kernel, "problem": dict(one.sizes), **common} for one in sizes]
    priced = partial(scored_as_compiled, spellings=FOR_ALL_SIZES)  # a policy's kernel is compiled once for all of them
    score = partial(judged, scored=priced) if compile and replay == "timed" else judged
    found = rows(points, score, f"policy, {replay}")
    cases = list(cases_of(sizes, found))
    if not cases:
        raise SearchError(f"none of the {len(sizes)} sizes could be scored: {found[0]['error']}", code="policy")
    if failed := [one["error"] for one in found if one["error"]]:
        say(f"{len(failed)} of {len(sizes)} sizes are left out, the first as {failed[0]}")
    return cases


def _screened(replay: Callable[..., list[Case]], texts: Texts, most: int, device: Gpu) -> Texts:
    """Orders by lockstep hits: one after the other what leaves least of the best to be lost over all calls."""
    from swizzle_sim.search.policy.rule import most_helpful

    if len(texts) <= most:
        return texts
    return [texts[k] for k in most_helpful(replay("lockstep", texts), [name for name, _ in texts], device)]


def _print(found: Policy, unproved: Sequence[str]) -> None:
    from swizzle_sim.search.policy.emit import claim

    rows = []
    for where, order, at in found.branches():
        one, worst = found.orders[order], max((found.regrets[i] for i in at), default=0.0)
        calls = sum(found.cases[i].calls for i in at)
        rows.append([where, one.name, one.where or "every launch", str(len(at)), f"{calls:g}", f"{worst:.2f}"])
    columns = ["where", "order", "proved for", "sizes", "calls", "worst regret [%]"]
    classes = {one.work_class for one in found.cases}
    note = simulated(found.gpu.name, found.replay, classes.pop() if len(classes) == 1 else "")
    table(f"{found.kernel} on {found.gpu.title}: orders by size", columns, rows, left=3, note=note)
    line(claim(found))
    idle, stays = found.matters.count(False), sum(1 for one in found.chosen if one == 0)
    line(f"no order matters at {idle} of {len(found.cases)} sizes; the launch order stays at {stays}")
    for why in dict.fromkeys(filter(None, found.measure)):
        labels = [case.label for case, one in zip(found.cases, found.measure, strict=True) if one == why]
        line(f"measure at {len(labels)} sizes, {labels[0]}{' to ' + labels[-1] if len(labels) > 1 else ''}: {why}")
    if over := [case.label for case, lost in zip(found.cases, found.regrets, strict=True) if lost > found.allowed]:
        line(f"more than {found.allowed:g} % is lost at {len(over)} sizes: {', '.join(over[:5])}")
    if unproved:
        say(f"not proved for all launches, so left out: {', '.join(unproved)}")
