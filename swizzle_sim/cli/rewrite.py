"""``rewrite``: a kernel's file with a swizzle in it, checked before it is written; the last step of a search too."""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from swizzle_sim.base.progress import Progress
from swizzle_sim.cli.arguments import Json, Launch, SwizzleText, grouped, load_swizzle, option, parse_sizes
from swizzle_sim.cli.output import print_json, say
from swizzle_sim.search.history import History
from swizzle_sim.search.ranking import ranking_of
from xcd_model.errors import SwizzleSimError

if TYPE_CHECKING:
    from swizzle_sim.rewrite import Checked, Rewritten
    from swizzle_sim.search.loop import Run
    from swizzle_sim.workload.kernels import Kernel
    from swizzle_sim.workload.price import RemapPrice
    from xcd_model import Gpu

Out = Annotated[Path | None, option("--out", "-o", help="File to write; without it the text goes to stdout.")]
At = Annotated[
    str,
    option(
        "--at",
        help="Ids to remap: program, tile, or auto: the tile's where programs=... is declared.",
        offers=("auto", "program", "tile"),
    ),
]


@grouped
def rewrite(
    swizzle: SwizzleText,
    launch: Launch,
    out: Out = None,
    diff: Annotated[bool, option("--diff", help="Print a unified diff.")] = False,
    check: Annotated[bool, option("--check/--no-check", help="Run both in Triton's interpreter, compile both.")] = True,
    at: At = "auto",
    elsewhere: Annotated[
        str,
        option(
            "--elsewhere",
            help="At other sizes than these: general (the swizzle), launch-order, or any: what costs least here.",
            offers=("any", "general", "launch-order"),
        ),
    ] = "any",
    json: Json = False,
) -> None:
    """Put a swizzle into a kernel's file; nothing is written unless the result computes the same."""
    from swizzle_sim.capture.process import shared_worker
    from swizzle_sim.capture.workload import workload
    from swizzle_sim.rewrite import check_rewritten, check_target, rewrite_workload, write_rewritten
    from swizzle_sim.rewrite.guard import GENERAL, emissions
    from swizzle_sim.rewrite.price import cheapest
    from swizzle_sim.workload.kernels import is_user_kernel
    from xcd_model import gpu as load_gpu

    candidate, device, spellings = load_swizzle(swizzle), load_gpu(launch.gpu), emissions(elsewhere)
    price = None
    with shared_worker(), Progress("rewriting, compiling, and comparing in the interpreter"):
        work = workload(launch.kernel, parse_sizes(launch.sizes))
        spelling = GENERAL if GENERAL in spellings else spellings[0]
        found = rewrite_workload(work, candidate, num_xcds=device.xcds, at=at, emission=spelling)
        if out is not None:
            check_target(found, out)
        if check and at == "auto":
            found, price = cheapest(work, candidate, device, elsewhere=elsewhere)
        checked = check_rewritten(found, work, device.arch) if check else None
    if out is not None:
        write_rewritten(found, out)
    if json:
        print_json(_document(found, checked, out) | {"price": price})
        return
    if diff:
        print(found.diff(out.name if out else ""), end="")
    elif out is None:
        print(found.text.decode("utf-8", "replace"), end="")
    _print(found, checked, out, price)
    given = {name: v for name, v in parse_sizes(launch.sizes).items() if name in work.launch.constexprs}
    if given and is_user_kernel(launch.kernel):
        print(f"launch it with {', '.join(f'{name}={v}' for name, v in given.items())}, as here", file=sys.stderr)


def _document(found: Rewritten, checked: Checked | None, out: Path | None) -> dict[str, Any]:
    check = asdict(checked) if checked else None
    for compiled in (check["before"], check["after"]) if check else ():
        del compiled["files"]  # digests of the files that took part
    return {
        "kernel": found.function,
        "original": str(found.path),
        "written": str(out) if out else None,
        "remapped": found.at,
        "note": found.note or None,
        "num_xcds": found.num_xcds,
        "emission": found.guarded.emission.name,
        "guard": found.guarded.condition or None,
        "verdict": found.guarded.verdict,
        "diff": found.diff(out.name if out else ""),
        "check": check,
    }


def _print(found: Rewritten, checked: Checked | None, out: Path | None, price: RemapPrice | None) -> None:
    """Print on stderr what was done: stdout may be a file."""
    guard = f"where {found.guarded.condition}" if found.guarded.condition else "on every grid (all tested ones pass)"
    say(f"remapped: the {found.at}'s id, {guard}; written as: {found.guarded.emission.name}")
    if found.note:
        say(f"  not the tile's: {found.note}")
    for case in checked.cases if checked else ():
        what = "outputs equal bit for bit" if case.whole else "each touches and stores what its tile did"
        some = f"{'all' if case.whole else 'a sample of'} {case.programs} programs"
        say(f"checked at grid {case.grid}: {some}, {what}; {case.moved} of the grid compute another tile")
        for name, count in case.unwritten.items():
            say(f"  {name}: {count} items that neither kernel writes")
    if checked:
        if any(case.races or not any(one.whole for one in checked.cases) for case in checked.cases):
            say(f"  {checked.words}")
        say(compiled_line(checked))
    else:
        say("not checked (--no-check)")
    if price is not None:
        lost = " (workgroups lost)" if price.loses_occupancy else ""
        say(f"price of the remap: {price}{lost}")
        if price.advice:
            say(f"  {price.advice}")
    if out is not None:
        say(f"written: {out}")


def compiled_line(checked: Checked) -> str:
    """Registers and LDS of both kernels; SGPRs are AMD's alone."""
    old, new = checked.before, checked.after
    amd = new.arch.startswith("gfx")
    first = f"VGPRs {old.vgprs} -> {new.vgprs}, SGPRs {old.sgprs} -> {new.sgprs}" if amd else ""
    return (
        f"compiled for {new.arch} with Triton {new.triton}: {first or f'registers {old.vgprs} -> {new.vgprs}'}, "
        f"LDS {old.lds_bytes} -> {new.lds_bytes} B, spills {old.vgpr_spills} -> {new.vgpr_spills}"
    )


@dataclass(frozen=True)
class Written:
    """The rewritten kernel of a run, or why there is none."""

    path: Path | None
    why_not: str
    lines: tuple[str, ...]  # for people

    def as_dict(self) -> dict[str, str | None]:
        """For ``--json``."""
        return {"rewritten": str(self.path) if self.path else None, "not_rewritten": self.why_not or None}


def rewrite_best(run: Run, kernel: Kernel, gpu: Gpu) -> Written:
    """Rewrite the kernel of a run's file with its best swizzle, and check it as ``swizzle-sim rewrite`` does.

    A kernel that cannot be rewritten does not undo the search: the answer says why.
    """
    from swizzle_sim.capture.process import shared_worker
    from swizzle_sim.capture.workload import workload
    from swizzle_sim.rewrite import check_rewritten, write_rewritten
    from swizzle_sim.rewrite.price import cheapest

    if not kernel.file:
        return _none(f"{kernel.name} is the suite's: swizzle-sim rewrite {kernel.name} --swizzle {run.folder}/best.txt")
    if kernel.file.endswith(".npz"):
        return _none("a trace file holds no kernel; swizzle-sim rewrite my_kernel.py --swizzle best.txt does it")
    if kernel.launch is None:
        return _none(f"it is CUDA or HIP: {run.folder}/best.hip goes into its file, as docs/howto/cuda.md says")
    with History(run.folder) as history:
        first = ranking_of(history.about, run.folder).order(run.attempts)[0]
    if first.number == run.baseline.number:
        return _none("no candidate beats the launch order")
    best = first.swizzle
    print("rewriting the kernel and checking it ...", file=sys.stderr, flush=True)
    try:
        with shared_worker():
            work = workload(kernel.file, kernel.problem)
            found, price = cheapest(work, best, gpu)
            checked = check_rewritten(found, work, gpu.arch)
        path = run.folder / f"{found.path.stem}_swizzled.py"
        write_rewritten(found, path)
    except SwizzleSimError as error:
        return _none(str(error))
    said = (
        f"rewritten kernel: {path} (the {found.at}'s id, {price.emission}; {checked.words}; "
        f"{checked.after.arch}: {price})"
    )
    return Written(path, "", (said, *([price.advice] if price.advice else [])))


def _none(why: str) -> Written:
    return Written(None, why, (f"no rewritten kernel: {why}",))
