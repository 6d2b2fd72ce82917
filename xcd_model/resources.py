"""`Resources`: what a workgroup of a compiled kernel takes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Resources:
    """What one workgroup of a compiled kernel occupies.

    Parameters
    ----------
    threads, vgprs : int
        Threads a workgroup; vector registers a lane, as allocated.
    lds_bytes : int [bytes]
        Local data share a workgroup.
    instructions_in_flight : int
        Tensor instructions of one workgroup that software pipelining keeps in flight (stages times loads a step), if
        there is room for what they load, see `loads_in_flight`.
    source : str
        Where the figures come from: compiler and version, or a document.
    code_bytes : int [bytes]
        Length of the kernel's code; 0 where it is not known.
    loads_per_step : int
        Of a pipelined loop: loads of a step, which go out together when those of the steps before have come, see
        `xcd_model.IssueModel`. 0 where the loop is not pipelined, or nobody knows.
    after_products : bool
        Of such a loop: whether a step's loads also wait for products, see `xcd_model.IssueModel`.
    step_instructions : int
        Of such a loop: instructions of a step that each wave executes beside loads and products. 0 counts none.
    past_l1 : bool
        Of such a loop: whether its loads go past the L1, as ``cp.async.cg`` and the tensor memory accelerator do.
    remap_instructions : int
        Instructions that each wave executes at the start of a workgroup because the kernel is remapped.
    step_cycles, ahead_cycles : int
        Of a pipelined loop whose code was timed: cycles a step of a full CU, the least that its products take; and, if
        loads wait for products, from a step's data to the next loads of a workgroup that has the CU for itself.
    burst_loads : int
        Of a loop that is not pipelined, where its code was timed: loads that go out together, once those before have
        come and what uses them is done. 0 where nobody knows.
    burst_cycles, busy_cycles : int
        From when such loads are there until the next go out, on a CU full of such workgroups; of those the cycles in
        which the workgroup needs the CU's busiest unit.
    vector_cycles, vector_loads : int
        Of a kernel without products: cycles in which a workgroup's other arithmetic keeps its CU, for so many loads:
        those of a turn of its loop, or of its whole code where no loop loads. 0 where nobody knows.
    """

    threads: int
    vgprs: int
    lds_bytes: int
    instructions_in_flight: int
    source: str
    code_bytes: int = 0
    loads_per_step: int = 0
    after_products: bool = False
    step_instructions: int = 0
    past_l1: bool = False
    remap_instructions: int = 0
    step_cycles: int = 0
    ahead_cycles: int = 0
    burst_loads: int = 0
    burst_cycles: int = 0
    busy_cycles: int = 0
    vector_cycles: int = 0
    vector_loads: int = 0
