"""`reward`: a verifiable reward for training models to write swizzles."""

from __future__ import annotations

from functools import lru_cache

from agent.cascade import Cascade, Judgement
from swizzle_sim.kernels import Kernel
from swizzle_sim.scoring import Scorer
from xcd_model import Gpu

REFUSED = {"parse": 0.0, "grid": 0.1, "bound": 0.0}  # by stage; the others passed the proof


def reward(kernel: Kernel, text: str, gpu: Gpu, *, replay: str = "timed") -> float:
    """Reward of one candidate: what a verifier would pay for it.

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
        of the language that is no bijection at the kernel's grid; 0.2 for a bijection no better than the order as
        launched; above that up to 1 by the part of the way from there to the bound that its L2 hit rate goes. A
        candidate that holds only on some grids of the lattice gets nine tenths of what is above 0.2.

    Notes
    -----
    The same candidate gets the same reward in every process. Nothing of the text is ever executed, every workgroup of
    the grid is checked before any score, and the score comes from a replay: there is nothing to game but the model.
    """
    return reward_of(Cascade(_scorer(kernel, gpu, replay)).judge(text, 0), _scorer(kernel, gpu, replay))


def reward_of(found: Judgement, scorer: Scorer) -> float:
    """Reward of what the cascade found."""
    if found.score is None:
        return REFUSED.get(found.stage, 0.2)
    room = scorer.bound.l2_hit_rate - scorer.baseline.l2_hit_rate
    gain = found.score.l2_hit_rate - scorer.baseline.l2_hit_rate
    part = min(1.0, max(0.0, gain / room)) if room > 0 else 0.0
    return 0.2 + 0.8 * part * (1.0 if found.code == "scored" else 0.9)


@lru_cache(maxsize=4)
def _scorer(kernel: Kernel, gpu: Gpu, replay: str) -> Scorer:
    return Scorer(kernel, gpu, replay=replay)
