"""What the README says of the run that ``make run`` makes, from a replay with drift."""

from __future__ import annotations

from swizzle_sim.kernels import kernel
from swizzle_sim.scoring import Scorer
from swizzle_sim.swizzle import Swizzle
from swizzle_sim.swizzle.families import family
from xcd_model import gpu

BEST = "contiguous+group_m(size=4)"


def run_words() -> str:
    """A paragraph: what is found in lockstep, and what drift makes of it."""
    (even, even_best), (launched, best) = (_rates(replay) for replay in ("lockstep", "timed"))
    if abs(even - even_best) > 0.005:
        raise ValueError(f"in lockstep {BEST} is no longer as good as the order as launched: write the paragraph anew")
    return "\n".join(
        [
            "`make run` takes GEMM 8192^3 in 256 x 256 tiles on MI300X, in lockstep. There the order as launched is "
            "already as good as any family, and",
            "the tool says so: 32 tile columns over 8 XCDs happen to give each XCD a strip 4 columns wide. Where "
            "workgroups drift (`--replay timed`),",
            f"`{BEST}` comes to {best:.1f} % of L2 hits and the order as launched to {launched:.1f} %. Smaller or "
            "odder grids are not so lucky.",
        ]
    )


def _rates(replay: str) -> tuple[float, float]:
    """L2 hit rates of the order as launched and of `BEST` [%]."""
    scorer = Scorer(kernel("gemm"), gpu("mi300x"), replay=replay)
    return 100 * scorer.baseline.l2_hit_rate, 100 * scorer.score(Swizzle.parse(family(BEST))).l2_hit_rate
