"""`RemapPrice`: what a remapping costs a kernel, by its compiles as launched and as rewritten; no GPU is needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

MORE_SPILLS = 1.5  # ratio of spilled words from which a remap is costly; any where the kernel spills none


@dataclass(frozen=True, kw_only=True)
class CodeFigures:
    """Figures of one kernel's code for one architecture."""

    arch: str  # architecture, such as ``"gfx942"`` or ``"sm_90a"``, and the version of the compiler
    triton: str
    sgprs: int  # scalar registers that the code uses; 0 on NVIDIA
    lds_bytes: int  # [bytes]: LDS or shared memory of a workgroup, with what the system reserves of it
    # sequence of (int, int): global loads in the code: bytes a lane (0 for a tile by NVIDIA's TMA), and how many,
    # widest first
    loads: Sequence[tuple[int, int]]
    # instructions before the first loop, on NVIDIA before the first with loads or products; of all the code where there
    # is none
    instructions_before_loop: int
    # of those the ones in loops of their own, such as over the levels of a curve; NVIDIA only
    instructions_in_curves: int = 0
    # tensor instructions in flight, see `xcd_model.Resources`; assumed by `swizzle_sim.capture.occupancy_code`
    instructions_in_flight: int
    code_bytes: int  # [bytes]: length of the code, of the functions that it calls too
    # of the main loop, see `xcd_model.Resources`; 0 and false on AMD, where they were not measured
    step_instructions: int = 0
    after_products: bool = False
    past_l1: bool = False
    # of a pipelined loop and of one that is not, see `xcd_model.Resources`; 0 where the architecture is none of
    # `swizzle_sim.nvidia.waves.TIMED`
    step_cycles: int = 0
    ahead_cycles: int = 0
    burst_loads: int = 0
    burst_cycles: int = 0
    busy_cycles: int = 0
    vector_cycles: int = 0  # of a kernel without products, see `xcd_model.Resources`
    vector_loads: int = 0


@dataclass(frozen=True, kw_only=True)
class CompiledKernel(CodeFigures):
    """One kernel compiled for one GPU, with workgroups a CU (AMD) or an SM (NVIDIA)."""

    registers: int  # allocated: VGPRs a lane, accumulation registers among them, or registers a thread
    agprs: int  # accumulation registers that the code uses; 0 on NVIDIA
    spills: int  # registers that did not fit (AMD), or spilled words of 4 bytes a thread (NVIDIA)
    workgroups_per_cu: int  # workgroups that fit a CU or an SM by all of these

    def executed_before_loop(self, levels: int) -> int:
        """Instructions that a wave executes before the loop, its own loops turning once a level."""
        return self.instructions_before_loop + (levels - 1) * self.instructions_in_curves

    @property
    def place(self) -> str:
        """What workgroups run on, in the vendor's word: CU or SM."""
        return "SM" if self.arch.startswith("sm_") else "CU"

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> CompiledKernel:
        """Inverse of ``dataclasses.asdict``, also after JSON."""
        return cls(**{**values, "loads": tuple((int(width), int(count)) for width, count in values["loads"])})


@dataclass(frozen=True, kw_only=True)
class RemapPrice:
    """A kernel compiled as launched and as rewritten."""

    before: CompiledKernel
    after: CompiledKernel
    emission: str = "general"  # how the remapping is spelled in the rewritten kernel, see `swizzle_sim.rewrite.guard`
    # compile options that give lost workgroups back, ``maxnreg`` or ``waves_per_eu``; empty for none
    offer: Mapping[str, int] = field(default_factory=dict)
    offered: CompiledKernel | None = None  # the rewritten kernel compiled with them

    @property
    def launched(self) -> CompiledKernel:
        """The rewritten kernel as a bundle launches it: with the options offered, if any."""
        return self.offered or self.after

    @property
    def loses_occupancy(self) -> bool:
        """Whether fewer workgroups fit a CU, however it is launched."""
        return self.launched.workgroups_per_cu < self.before.workgroups_per_cu

    @property
    def loses_pipeline(self) -> bool:
        """Whether the compiler keeps fewer buffers of coming steps in LDS than it did, and so fewer loads in flight."""
        old, new = self.before, self.launched
        return new.lds_bytes < old.lds_bytes and new.instructions_in_flight < old.instructions_in_flight

    @property
    def is_costly(self) -> bool:
        """Whether the kernel would be slower by the remap's code: workgroups or pipeline lost, or registers spilled.

        One that spills already may spill a few words more, as attention did on an H100 at two thirds of its time.
        """
        spills = self.launched.spills > MORE_SPILLS * self.before.spills
        return self.loses_occupancy or self.loses_pipeline or spills

    @property
    def is_free(self) -> bool:
        """Whether it costs nothing, not even a register."""
        grown = self.after.registers > self.before.registers or self.after.spills > self.before.spills
        return not (grown or self.is_costly)

    def __str__(self) -> str:
        return _change(self.before, self.after) + self.lost_pipeline

    @property
    def lost_pipeline(self) -> str:
        """What is said of a lost software pipeline; empty where it is kept."""
        old, new = self.before, self.launched
        loads = f"{old.instructions_in_flight} -> {new.instructions_in_flight} loads in flight"
        lost = f", software pipeline lost (LDS {old.lds_bytes} -> {new.lds_bytes} B, {loads})"
        return lost if self.loses_pipeline else ""

    @property
    def advice(self) -> str:
        """What gives lost workgroups back; empty where nothing is lost or nothing does."""
        if self.offered is None:
            return ""
        options = ", ".join(f"{name}={value}" for name, value in self.offer.items())
        return f"scored and bundled with {options}: {_change(self.before, self.offered)}"

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            **asdict(self),
            "offer": dict(self.offer),
            "loses_occupancy": self.loses_occupancy,
            "loses_pipeline": self.loses_pipeline,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> RemapPrice:
        """Inverse of `as_dict`."""
        return cls(
            before=CompiledKernel.from_dict(values["before"]),
            after=CompiledKernel.from_dict(values["after"]),
            emission=values["emission"],
            offer=dict(values["offer"]),
            offered=CompiledKernel.from_dict(values["offered"]) if values["offered"] else None,
        )


def _change(old: CompiledKernel, new: CompiledKernel) -> str:
    """Such as ``118 -> 140 registers, 2 -> 1 workgroups an SM``."""
    words = [f"{old.registers} -> {new.registers} registers"]
    if old.spills or new.spills:
        words.append(f"{old.spills} -> {new.spills} spilled")
    article = "an" if old.place == "SM" else "a"
    words.append(f"{old.workgroups_per_cu} -> {new.workgroups_per_cu} workgroups {article} {old.place}")
    return ", ".join(words)
