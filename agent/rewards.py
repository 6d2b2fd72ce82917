"""`reward`: the judge as a verifiable reward, for training models to write swizzles."""

from __future__ import annotations

from functools import lru_cache

from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.search.judge import Judge, reward_of
from swizzle_sim.workload.kernels import Kernel
from xcd_model import Gpu


def reward(kernel: Kernel, text: str, gpu: Gpu, *, replay: str = "timed") -> float:
    """Verifiable reward of one candidate, for training models to write swizzles.

    Parameters
    ----------
    kernel : Kernel
    text : str
        Candidate in the closed language; hostile text costs nothing but a refusal.
    gpu : Gpu
    replay : {"timed", "lockstep"}

    Returns
    -------
    reward : float
        0 for text outside the language, and for one that beats the proven bound (a defect, never a win); 0.1 for text
        of the language that is no bijection at the kernel's grid; 0.2 for a bijection no better than the launch
        order; above that up to 1 with the share that its L2 hit rate gains of the points between the launch order and
        the fewest misses of any order. A candidate that holds only on some grids of the lattice gets nine tenths of
        the part above 0.2.

    Notes
    -----
    The same candidate gets the same reward in every process. Nothing of the text is ever executed, every workgroup of
    the grid is checked before any score, and the score comes from a replay: there is nothing to game but the model.
    """
    scorer = _scorer(kernel, gpu, replay)
    return reward_of(Judge(scorer, far_worse=True).judge(text), scorer)


@lru_cache(maxsize=4)
def _scorer(kernel: Kernel, gpu: Gpu, replay: str) -> Scorer:
    return Scorer(kernel, gpu, replay=replay)
