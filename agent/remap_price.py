"""`RemapWords`: what each order takes in registers and workgroups a CU once it is compiled, in words for a prompt."""

from __future__ import annotations

from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.rewrite.price import price
from swizzle_sim.search.history import Attempt
from xcd_model.errors import CompileError, SwizzleSimError

from .transcript import Transcript

NOTE, REGISTERS = "bottleneck", "registers"  # kind of note, and its key, that hold the words


class RemapWords:
    """Prices of a run's attempts: compiled, or read from the run that is repeated."""

    def __init__(self, scorer: Scorer, compiles: bool, recorded: Transcript | None):
        self._scorer, self._compiles, self._recorded = scorer, compiles, recorded

    def __call__(self, attempt: Attempt) -> str:
        """Such as ``118 -> 140 registers, 2 -> 1 workgroups a CU``; empty where nothing was compiled."""
        if self._recorded is not None:
            return str((self._recorded.noted(NOTE, attempt.number) or {}).get(REGISTERS, ""))
        if not self._compiles or attempt.number == 0:
            return ""
        try:
            return str(price(self._scorer.kernel, attempt.swizzle, self._scorer.gpu))
        except CompileError:  # no compiler, or not for this kernel: the next would fail as well
            self._compiles = False
        except SwizzleSimError:  # this order cannot be put into the kernel
            pass
        return ""
