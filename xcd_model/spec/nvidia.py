"""For NVIDIA GPUs only: the two partitions of an L2, and the banks and rows of its HBM. No AMD description has either.

Source: measured on one H200; `xcd_model.nvidia.memory` and `xcd_model.nvidia.memory` replay them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from xcd_model.errors import SpecError
from xcd_model.spec.facts import at_most, check_types


@dataclass(frozen=True, kw_only=True)
class L2Partitions:
    """The two partitions of an L2, each as large as the GPU's ``l2``."""

    # the parity of the address bits [bytes] set here is the partition that is a line's point of coherence
    coherence_bits: int
    # CUs in dispatch order are cut into this many groups, as even as possible, on the two partitions alternately
    cu_groups: int
    remote_ns: float  # [ns]: additional read latency for a line that the remote partition holds
    # most reads of one line, by CUs of one group, that go to the L2 as one; each goes by itself where not given
    reads_as_one: int | None = None
    # part of the time that another reader's request is under way with one; given with ``reads_as_one``
    under_way: float | None = None

    def __post_init__(self):
        check_types(self)
        at_most("coherence_bits", self.coherence_bits, "2**63 - 1", 2**63 - 1)
        at_most("under_way", self.under_way or 0.0, "all of the time", 1.0)
        if (self.reads_as_one is None) != (self.under_way is None):
            raise SpecError("reads_as_one and under_way are given both or neither")

    def group_of(self, cus: int) -> np.ndarray:
        """(cus,) int64: group of each CU."""
        ends = np.rint(np.arange(1, self.cu_groups + 1) * cus / self.cu_groups)
        return np.searchsorted(ends, np.arange(cus), side="right")

    def partition_of(self, cus: int) -> np.ndarray:
        """(cus,) int64: partition of each CU."""
        return self.group_of(cus) % 2


@dataclass(frozen=True, kw_only=True)
class HbmBanks:
    """The banks of a GPU's memory and the layout of their rows."""

    block_bytes: int  # [bytes]: contiguous bytes of a row (the interleave); a whole number of cache lines
    blocks: int  # blocks of a row
    # memory is cut into spans of this many blocks; a row has one block in each of ``blocks`` consecutive spans, at a
    # hashed place in each
    stretch_blocks: int
    open_rows: int  # banks, each with one open row
    read_ps: float  # [ps]: least time of the whole memory for a read or write that activates a row
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
