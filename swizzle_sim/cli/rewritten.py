"""The last step of a search over a user's kernel: its file with the best swizzle in it, beside ``best.txt``."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from swizzle_sim.kernels import Kernel
    from swizzle_sim.search import Run
    from xcd_model import Gpu


@dataclass(frozen=True)
class Written:
    """The rewritten kernel of a run, or why there is none.

    Parameters
    ----------
    path : Path or None
    why_not : str
    lines : tuple of str
        What to tell people.
    """

    path: Path | None
    why_not: str
    lines: tuple[str, ...]

    def as_dict(self) -> dict[str, str | None]:
        """For ``--json``."""
        return {"rewritten": str(self.path) if self.path else None, "not_rewritten": self.why_not or None}


def rewrite_best(run: Run, kernel: Kernel, gpu: Gpu) -> Written:
    """Rewrite the kernel of a run's file with its best swizzle, and check it as ``swizzle-sim rewrite`` does.

    A kernel that cannot be rewritten does not undo the search: the answer says why.
    """
    from swizzle_sim.capture.occupancy_workload import workload
    from swizzle_sim.capture.process import kept
    from swizzle_sim.capture.user_kernel import ARCHS
    from swizzle_sim.history import History
    from swizzle_sim.rewrite import check_rewritten, rewrite_workload, write_rewritten
    from swizzle_sim.swizzle import Swizzle
    from swizzle_sim.tuning.ranking import ranking_of
    from xcd_model.errors import SwizzleSimError

    if not kernel.file:
        return _none(f"{kernel.name} is the suite's: swizzle-sim rewrite {kernel.name} --swizzle {run.folder}/best.txt")
    if kernel.file.endswith(".npz"):
        return _none("a trace file holds no kernel; swizzle-sim rewrite my_kernel.py --swizzle best.txt does it")
    with History(run.folder) as history:
        first = ranking_of(history.about).order(run.attempts)[0]
    if first.number == run.baseline.number:
        return _none("no candidate beats the order as launched")
    best = Swizzle.parse(first.source, name=first.name)
    arch = gpu.arch if gpu.arch in ARCHS else ARCHS[0]
    print("rewriting the kernel and checking it ...", file=sys.stderr, flush=True)
    try:
        with kept():
            work = workload(kernel.file, kernel.problem)
            found = rewrite_workload(work, best, num_xcds=gpu.xcds)
            checked = check_rewritten(found, work, arch)
        path = run.folder / f"{found.path.stem}_swizzled.py"
        write_rewritten(found, path)
    except SwizzleSimError as error:
        return _none(str(error))
    whole = sum(case.whole for case in checked.cases)
    old, new = checked.before, checked.after
    return Written(
        path,
        "",
        (
            f"rewritten kernel: {path} (the {found.at}'s id; outputs equal bit for bit at {whole} small sizes; "
            f"{new.arch}: VGPRs {old.vgprs} -> {new.vgprs}, SGPRs {old.sgprs} -> {new.sgprs}, "
            f"spills {old.vgpr_spills} -> {new.vgpr_spills})",
        ),
    )


def _none(why: str) -> Written:
    return Written(None, why, (f"no rewritten kernel: {why}",))
