"""`compare`: does an instance compute what the original does? Both are interpreted at small ragged sizes.

Outputs are equal bit for bit, or within a tolerance where tiles of another size add up sums in another order. What no
program writes, guards around each tensor among it, stays as it is. At ragged sizes a kernel without masks may differ,
where its constants divide no size; at even sizes, which all constants divide as they do at the kernel's own, none may.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from swizzle_sim.capture.process import run_worker, shared_worker
from swizzle_sim.capture.workload import Workload
from swizzle_sim.rewrite.check import CHECK_TIMEOUT_S, WORKER, stored_inputs
from swizzle_sim.rewrite.small_sizes import small_workloads
from swizzle_sim.workload.launch import Launch
from xcd_model.errors import RewriteError, SwizzleSimError

XCDS = 8  # by which small sizes are ragged
MOST_PROGRAMS = 256  # of one case
Pair = tuple[str, bool, Launch, Launch]  # sizes in words, whether they are even, the original's launch, the instance's


@dataclass(frozen=True)
class Compared:
    """What was compared."""

    cases: tuple[str, ...]  # sizes at which both ran
    exact: int  # of these, at which all outputs are equal bit for bit
    largest: float  # difference of the others, over the largest output of their tensor
    not_at: tuple[str, ...] = ()  # ragged sizes at which the instance computes otherwise

    @property
    def words(self) -> str:
        """What was compared, in a sentence."""
        but = f"; not where its constants do not divide the sizes, as {self.not_at[0]}" if self.not_at else ""
        if self.exact == len(self.cases):
            return f"outputs equal bit for bit at {self.exact} small sizes{but}"
        near = f"outputs equal at {len(self.cases)} small sizes, to {self.largest:.0e} of the largest: sums add up anew"
        return near + but


def compare(original: Workload, instance: Workload, text: bytes, seed: int = 0) -> Compared:
    """Run the original and an instance with the text of its file at small sizes; refuse an instance that differs."""
    with shared_worker(), tempfile.TemporaryDirectory(prefix="swizzle-sim-") as folder:
        new = Path(folder, original.launch.path.name)
        new.write_bytes(text)
        found = small_pairs(original, instance)
        pairs = [(words, even, one, replace(other, text_from=new)) for words, even, one, other in found]
        return compare_launches(original.launch.path, pairs, Path(folder), seed)


def small_pairs(original: Workload, instance: Workload) -> Iterator[Pair]:
    """Launches of both at small sizes, the constants of each left as they are."""
    constants = set(original.launch.constexprs)
    ragged = [small.problem for _, small in small_workloads(original, XCDS)]
    own = {name: size for name, size in original.problem.items() if name not in constants}
    steps = {name: _step(size, original.launch, instance.launch) for name, size in own.items()}
    even = [{name: min(size, steps[name] * turns) for name, size in own.items()} for turns in (1, 2, 3)]
    sizes = {tuple(one[name] for name in own): False for one in ragged} | {tuple(one.values()): True for one in even}
    for values, is_even in sizes.items():
        free = dict(zip(own, values, strict=True))
        words = ", ".join(f"{name}={size}" for name, size in free.items())
        try:
            one, other = (work.at({**work.problem, **free}) for work in (original, instance))
        except SwizzleSimError:
            continue
        if max(one.grid.num_pids, other.grid.num_pids) <= MOST_PROGRAMS:
            yield words, is_even, one.launch, other.launch


def _step(size: int, *launches: Launch) -> int:
    """Least size that every constant divides which divides a size."""
    constants = [one for launch in launches for one in launch.constexprs.values() if type(one) is int and one > 1]
    return math.lcm(*(one for one in constants if size % one == 0))


def compare_launches(path: Path, pairs: Sequence[Pair], folder: Path, seed: int) -> Compared:
    """Interpret pairs of launches of one file and its instance, and compare what they leave in memory."""
    if not pairs:
        raise RewriteError("no size of it is small enough to interpret, so an instance cannot be compared", path=path)
    cases = [
        {
            "what": what,
            "kind": str(number),
            "inputs": stored_inputs(one, folder, seed),
            "launches": [one.as_dict(), other.as_dict()],
        }
        for number, (what, _, one, other) in enumerate(pairs)
    ]
    reply = run_worker(WORKER, {"cases": cases}, interpret=True, timeout_s=CHECK_TIMEOUT_S)
    if "error" in reply:
        raise RewriteError(f"the instance does not run in the interpreter: {reply['error']}", path=path)
    both = list(zip(pairs, reply["cases"], strict=True))
    ran = [(what, one["largest"]) for (what, *_), one in both if "largest" in one]
    differ = [(what, even, one["different"]) for (what, even, *_), one in both if "different" in one]
    some_even = any(even for (_, even, *_), one in both if "largest" in one)
    if wrong := [said for _, even, said in differ if even or not some_even]:
        raise RewriteError(f"the instance computes otherwise: {wrong[0]}", path=path)
    if not ran:
        raise RewriteError(f"the original does not run at any small size: {reply['cases'][0]['not_run']}", path=path)
    fars, not_at = [far for _, far in ran], tuple(what for what, *_ in differ)
    return Compared(tuple(what for what, _ in ran), sum(not far for far in fars), max(fars), not_at)
