"""For NVIDIA GPUs only: the two partitions of an L2, and the banks and rows of its HBM. No AMD description has either.

Source: measured on one H200; `xcd_model.nvidia.l2_partitions` and `xcd_model.nvidia.hbm_rows` replay them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from xcd_model.errors import SpecError
from xcd_model.spec.facts import at_most, check_types


@dataclass(frozen=True, kw_only=True)
class L2Partitions:
    """The two partitions of an L2, each as large as the GPU's ``l2``.

    Parameters
    ----------
    coherence_bits : int
        The parity of the address bits [bytes] set here is the partition that is a line's point of coherence.
    cu_groups : int
        CUs in dispatch order are cut into this many groups, as even as possible, on the two partitions alternately.
    remote_ns : float [ns]
        Additional read latency for a line that the remote partition holds.
    group_delays : tuple of float
        How much longer than on average the loads of each group of CUs take, as a share of the time from issue to
        arrival; negative where they take less. Empty where all take as long.
    """

    coherence_bits: int
    cu_groups: int
    remote_ns: float
    group_delays: tuple[float, ...] = ()

    def __post_init__(self):
        check_types(self)
        at_most("coherence_bits", self.coherence_bits, "2**63 - 1", 2**63 - 1)
        if self.group_delays and len(self.group_delays) != self.cu_groups:
            raise SpecError(
                f"group_delays has {len(self.group_delays)} values for cu_groups = {self.cu_groups}: give one a group"
            )
        for delay in self.group_delays:
            if not -0.5 <= delay <= 0.5:
                raise SpecError(f"group_delays has {delay}: a share of a load's time, -0.5 to 0.5")
        object.__setattr__(self, "group_delays", tuple(self.group_delays))

    def _group_of(self, cus: int) -> np.ndarray:
        """(cus,) int64: group of each CU."""
        ends = np.rint(np.arange(1, self.cu_groups + 1) * cus / self.cu_groups)
        return np.searchsorted(ends, np.arange(cus), side="right")

    def load_delay(self, cus: int) -> np.ndarray:
        """(cus,) int64 [1 / 65536]: how much longer the loads of each CU take; empty where all take as long."""
        if not self.group_delays:
            return np.zeros(0, np.int64)
        return np.rint(np.array(self.group_delays) * 65536).astype(np.int64)[self._group_of(cus)]

    def partition_of(self, cus: int) -> np.ndarray:
        """(cus,) int64: partition of each CU."""
        return self._group_of(cus) % 2


@dataclass(frozen=True, kw_only=True)
class HbmBanks:
    """The banks of a GPU's memory and the layout of their rows.

    Parameters
    ----------
    block_bytes : int [bytes]
        Contiguous bytes of a row (the interleave); a whole number of cache lines.
    blocks : int
        Blocks of a row.
    stretch_blocks : int
        Memory is cut into spans of this many blocks; a row has one block in each of ``blocks`` consecutive spans, at a
        hashed place in each.
    open_rows : int
        Banks, each with one open row.
    read_ps, write_ps : float [ps]
        Least time of the whole memory for a read or write that activates a row.
    """

    block_bytes: int
    blocks: int
    stretch_blocks: int
    open_rows: int
    read_ps: float
    write_ps: float

    def __post_init__(self):
        check_types(self)
        at_most("open_rows", self.open_rows, "a million", 1_000_000)

    def shared_by(self, domains: int) -> HbmBanks:
        """Banks of one of ``domains`` equal parts of the memory."""
        return replace(
            self,
            open_rows=max(1, self.open_rows // domains),
            read_ps=self.read_ps * domains,
            write_ps=self.write_ps * domains,
        )
