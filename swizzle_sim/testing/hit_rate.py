"""``assert_hit_rate``: a floor under the L2 hit rate of a kernel, so that a remap that is lost is noticed."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path

import numpy as np

from swizzle_sim.language import Swizzle
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.search import recorded
from swizzle_sim.search.candidates import distinct_shortlist
from swizzle_sim.testing.candidate import TextCandidate, as_candidate
from swizzle_sim.workload.kernels import Kernel
from xcd_model import Gpu
from xcd_model import gpu as load_gpu
from xcd_model.errors import OptionError

_THREADS = 4
_MOST_ORDERS = 64  # families tried for the message, most promising first: a failing test answers in seconds


class HitRateError(AssertionError):
    """A kernel's simulated L2 hit rate is below the floor.

    It holds the rate of the order that was asked for, of the launch order and of the best family, 0 to 1, and its name.
    """

    def __init__(self, message: str, l2_hit_rate: float, launch_order: float, best: float, family: str):
        super().__init__(message)
        self.l2_hit_rate, self.launch_order, self.best, self.family = l2_hit_rate, launch_order, best, family


def assert_hit_rate(
    kernel: str | Path | Kernel,
    swizzle: str | Path | Swizzle | None = None,
    gpu: str | Gpu = "mi300x",
    *,
    at_least: float,
    replay: str = "lockstep",
    **sizes: int,
) -> None:
    """Assert that a kernel's simulated L2 hit rate reaches a floor.

    Parameters
    ----------
    kernel : str, Path or Kernel
        Kernel of the suite, a file that declares one (``my_kernel.py`` or ``my_kernel.py:NAME``), a trace file.
    swizzle : str, Path or Swizzle, optional
        Order of workgroups: a family's spec, a text, a file with one, ``file.py::function`` of a Triton function. By
        default the order as launched, with whatever remap the kernel's own source has.
    gpu : str or Gpu
    at_least : float
        0 to 1.
    replay : {"lockstep", "timed"}
    **sizes : int
        Problem sizes of the kernel; others keep their default.

    Raises
    ------
    HitRateError
        An `AssertionError`. The message gives this hit rate, that of the launch order, of the best
        family, and the bound.
    NotBijective
        If the swizzle is no permutation of the kernel's grid: then it has no hit rate.
    OptionError
        If ``at_least`` is no rate, or the swizzle is no text.
    SwizzleSimError
        If the kernel or the GPU cannot be read, or the kernel not be captured.
    """
    __tracebackhide__ = True  # pytest shows the caller's line
    if not 0 <= at_least <= 1:
        raise OptionError(f"at_least = {at_least}: a hit rate is between 0 and 1, such as 0.9 for 90 %")
    device = gpu if isinstance(gpu, Gpu) else load_gpu(gpu)
    scorer = Scorer(kernel_at(kernel, sizes, device), device, replay=replay)
    order = None if swizzle is None else _swizzle(swizzle)
    found = (scorer.baseline if order is None else scorer.score(order)).l2_hit_rate
    if found < at_least:
        raise _shortfall(scorer, order, found, at_least)


def kernel_at(kernel: str | Path | Kernel, sizes: dict[str, int], gpu: Gpu) -> Kernel:
    """Kernel of the suite, of a file or of a trace file, compiled for a GPU's architecture."""
    if isinstance(kernel, Kernel):
        if sizes:
            raise OptionError(f"{', '.join(sizes)}: a Kernel has its own sizes; give its name or file for others")
        return kernel
    return recorded.kernel_at(str(kernel), sizes, gpu.arch)


def _swizzle(given: str | Path | Swizzle) -> Swizzle:
    candidate, _ = as_candidate(given)
    if not isinstance(candidate, TextCandidate):
        raise OptionError(
            f"{candidate.name} is a Python function: the hit rate needs a text, a family or a Triton function"
        )
    return candidate.swizzle


def _shortfall(scorer: Scorer, order: Swizzle | None, found: float, at_least: float) -> HitRateError:
    """Error with the rates that say what is missing and what there is to gain."""
    kernel, launch_order, bound = scorer.kernel, scorer.baseline.l2_hit_rate, scorer.bound.l2_hit_rate
    family, best, tried = _best_family(scorer)
    sizes = " ".join(f"{name}={value}" for name, value in kernel.problem.items())
    which = "as launched" if order is None else f"under {order.name or 'the swizzle'}"
    rows = [f"{kernel.name} {sizes} on {scorer.gpu.title}, {which}: L2 hit rate {_pct(found)}, below {_pct(at_least)}"]
    if order is not None:
        rows.append(f"  launch order: {_pct(launch_order)}")
    rows.append(f"  best of the {tried} first family members: {_pct(best)}, {family}")
    reach = "" if bound >= at_least else ", so no order reaches the floor"
    rows.append(f"  upper bound of every order: {_pct(bound)}{reach}")
    rows.append(f"  simulated, {scorer.replay} replay")
    return HitRateError("\n".join(rows), found, launch_order, best, family)


def _best_family(scorer: Scorer) -> tuple[str, float, int]:
    """Family with the highest L2 hit rate, that rate, and how many were tried.

    Candidates are screened by the lockstep replay; the rate is of the scorer's own.
    """
    screen = scorer if scorer.replay == "lockstep" else Scorer(scorer.kernel, scorer.gpu, replay="lockstep")
    launched = np.arange(scorer.kernel.grid.num_pids)
    members = ((one.name, order) for one, order in distinct_shortlist(screen))
    tried = [("identity", launched), *islice(members, _MOST_ORDERS)]
    _ = screen.baseline  # the trace, before the threads need it
    with ThreadPoolExecutor(_THREADS) as pool:
        rates = list(pool.map(lambda named: screen.score_order(named[1], baseline_us=None).l2_hit_rate, tried))
    rate, at = max((rate, -k) for k, rate in enumerate(rates))  # of equals the first
    name, order = tried[-at]
    if screen is not scorer:
        rate = scorer.score_order(order, baseline_us=None).l2_hit_rate
    return name, rate, len(tried) - 1


def _pct(rate: float) -> str:
    return f"{100 * rate:.2f} %"
