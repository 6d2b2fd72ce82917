from swizzle_sim.report.bottleneck import bottleneck_report

from .loop import propose, repeat_run
from .settings import Inputs, Settings
from .transcript import Exchange, Transcript
from .tune import tune_prompt
from .verifiable import reward, rewards

__all__ = [
    "Exchange",
    "Inputs",
    "Settings",
    "Transcript",
    "bottleneck_report",
    "propose",
    "repeat_run",
    "reward",
    "rewards",
    "tune_prompt",
]
