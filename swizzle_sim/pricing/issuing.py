"""`issue_model_of`: how a compiled kernel's workgroups issue and compute, from what its resources say.

    loop                          loads that go out together, and when
    pipelined                     a step's, ``stages`` steps ahead, see `xcd_model.IssueModel`
    not pipelined, code timed     a burst's, when the burst before has come and what its code does with it is done
    otherwise                     one at a time, as many in flight as a step has

Compute is the kernel's arithmetic at the GPU's rates, spread evenly over its tensor instructions; of a kernel without
products it is the time that its compiled code keeps the vector units, if that was counted. Where the loop's code
was timed (`swizzle_sim.nvidia.waves`), it is the part of that in which a workgroup needs the busiest unit,
and of a pipelined loop no less than the code's; the rest of the code that its next loads wait for goes before those, as
does what workgroups wait for each other in a CU's queues, beyond what the replay has of it.

Workgroups of a CU go round two queues, the way in from the L2 and the units that compute, and else wait for memory:

    wait at a queue   service * (1 + others there)    others: as many as n - 1 workgroups have there in the mean
    step              elsewhere + both waits          there in the mean: n * wait / step

Each queue serves all who are there at once: waves take turns, and sectors of several loads arrive mixed. The mean
values of such queues do not depend on how services are distributed. The replay serves one burst after the other; equal
bursts fall into a rhythm there in which nobody waits until one unit is busy all the time. What the mean values say
beyond that goes before each step's loads; where one unit is busy all the time the replay's own waits hide it. No
constant is in it. Decision 0022.

Sources: Reiser and Lavenberg, "Mean-value analysis of closed multichain queuing networks", Journal of the ACM 27(2),
1980; Baskett, Chandy, Muntz and Palacios, "Open, closed, and mixed networks of queues with different classes of
customers", Journal of the ACM 22(2), 1975, for queues that serve all at once.
"""

from __future__ import annotations

from collections.abc import Sequence

from swizzle_sim.workload.work import Work
from xcd_model import Gpu, IssueModel, Resources, Trace, compute_fs, loads_in_flight
from xcd_model.replay.service_times import service_times_of, speed_variation_of


def issue_model_of(
    kernel: Work, gpu: Gpu, sent: Trace, workgroups_per_cu: int, *, seed: int = 0, jitter_fs: int = 0
) -> IssueModel:
    """Issue model of a kernel's workgroups."""
    resources = kernel.resources
    instruction_fs = compute_fs(
        gpu,
        flops_per_instruction=kernel.issued_flops / sent.n_instructions,
        dtype=kernel.dtype,
        vector_ops_per_instruction=kernel.vector_ops / sent.n_instructions,
        workgroups_per_cu=workgroups_per_cu,
    )
    if resources.vector_loads:
        turns = int((~sent.is_write[sent.template]).sum()) / resources.vector_loads
        instruction_fs = max(instruction_fs, round(_fs(resources.vector_cycles, gpu) * turns / sent.n_instructions))
    cus = gpu.xcds * gpu.cus_per_xcd
    running = min(workgroups_per_cu, -(-(kernel.programs or sent.n_workgroups) // cus))
    if resources.burst_loads:
        instruction_fs = round(_fs(resources.busy_cycles, gpu) / resources.burst_loads)
        in_flight, step, step_fs = resources.burst_loads, resources.burst_loads, _between_bursts_fs(resources, gpu)
        waits = True
    else:
        in_flight = loads_in_flight(resources, sent)
        step = _step(resources, in_flight)
        if step:
            cycles: float = resources.step_cycles
            if running == 1 and not kernel.vector_ops:
                cycles -= _hidden_cycles(resources, gpu)
            instruction_fs = max(instruction_fs, round(_fs(cycles, gpu) / step))
        step_fs = 0 if kernel.vector_ops else _step_fs(resources, gpu, step, instruction_fs)
        waits = bool(step) and resources.after_products
        in_flight -= step * waits
    remap_fs, remap_wait_fs = _remap_fs(resources, gpu)
    issue = IssueModel(
        in_flight=in_flight,
        compute_fs=instruction_fs,
        jitter_fs=jitter_fs,
        seed=seed,
        speed_variation=speed_variation_of(gpu),
        step=step,
        remap_fs=remap_fs,
        step_fs=step_fs,
        after_products=waits,
        remap_wait_fs=remap_wait_fs,
    )
    if step and not resources.burst_loads and gpu.limits.fill_bytes_per_cycle:
        issue = issue._replace(step_fs=issue.step_fs + queued_fs(issue, gpu, sent, running))
    issue.check()
    return issue


def _step(resources: Resources, in_flight: int) -> int:
    """Loads of a pipelined step that wait for those of the steps before."""
    step = resources.loads_per_step
    return step if step and step < in_flight and in_flight % step == 0 else 0


def _waves_per_simd(resources: Resources, gpu: Gpu) -> float:
    """Waves of one workgroup on each SIMD of its CU."""
    return -(-resources.threads // gpu.limits.wave_size) / gpu.limits.simds_per_cu


def _remap_fs(resources: Resources, gpu: Gpu) -> tuple[int, int]:
    """What a CU computes to remap one workgroup, and what each of its waves takes for itself."""
    instructions = resources.remap_instructions / gpu.clock_mhz * 1e9
    busy = (gpu.limits.scalar_cycles or 0.0) * _waves_per_simd(resources, gpu)
    return round(instructions * busy), round(instructions * (gpu.limits.scalar_wait_cycles or 0.0))


def _step_fs(resources: Resources, gpu: Gpu, step: int, instruction_fs: int) -> int:
    """From when a step's first load could be issued until it is: what its code takes besides the compute, if timed.

    Else an instruction a cycle, and products' issue. Nothing of it where the kernel computes between its products: its
    vector instructions are counted there.
    """
    if not step:
        return 0
    if resources.ahead_cycles:
        return max(0, round(_fs(resources.ahead_cycles, gpu) - step * instruction_fs))
    cycles = resources.step_instructions * _waves_per_simd(resources, gpu)
    behind = 0.0 if resources.after_products else gpu.limits.products_before_loads or 0.0
    return round(_fs(cycles, gpu) + behind * step * instruction_fs)


def _hidden_cycles(resources: Resources, gpu: Gpu) -> float:
    """Cycles of a lone workgroup's code that run while its loads are on their way: no more than these take."""
    if not resources.ahead_cycles:
        return 0.0
    latency = (gpu.l2.latency_ns + (gpu.limits.copy_ns or 0.0)) * gpu.sustained_clock_mhz / 1e3
    return min(max(0.0, resources.step_cycles - resources.ahead_cycles), latency)


def _between_bursts_fs(resources: Resources, gpu: Gpu) -> int:
    """What a burst's code takes beside the compute, less what the replay adds to loads as if they were copies."""
    copy_fs = (gpu.limits.copy_ns or 0.0) * 1e6
    return max(0, round(_fs(resources.burst_cycles - resources.busy_cycles, gpu) - copy_fs))


def _fs(cycles: float, gpu: Gpu) -> float:
    return cycles / gpu.sustained_clock_mhz * 1e9


def step_time(services: Sequence[float], elsewhere: float, n: int) -> float:
    """Time of a step of each of ``n`` workgroups: ``services`` of it in each queue, alone there, and ``elsewhere``."""
    there, step = [0.0] * len(services), 0.0
    for among in range(1, n + 1):
        waits = [service * (1 + others) for service, others in zip(services, there, strict=True)]
        step = elsewhere + sum(waits)
        there = [among * wait / step if step else 0.0 for wait in waits]
    return step


def longer_by(services: Sequence[float], alone: float, n: int) -> float:
    """How much longer a step of ``n`` workgroups takes than queues explain that serve one burst after the other.

    ``alone`` is the step of one workgroup, less than its parts where it loads for one step and computes another.
    """
    elsewhere = max(0.0, alone - sum(services))
    mixed = alone + step_time(services, elsewhere, n) - step_time(services, elsewhere, 1)
    return max(0.0, mixed - max(alone, n * max(services)))


def queued_fs(issue: IssueModel, gpu: Gpu, sent: Trace, running: int) -> int:
    """What a step's loads go out later for the queues [fs], with ``running`` workgroups on the fullest CU.

    0 where more than one step is loaded ahead, which would hide it. The lone step is that of data in the L2, and a CU
    takes in all that is loaded, at its own rate: of a GPU for which that is known.
    """
    if issue.in_flight // issue.step - (not issue.after_products) > 1:
        return 0
    times = service_times_of(gpu)
    requests = sent.requests_per_template(gpu.l2.read_request_bytes, gpu.l2.write_request_bytes)
    loads = requests[sent.template[~sent.is_write[sent.template]]]
    taken_in = float(loads.mean()) * issue.step * times.cu_fill if loads.size else 0.0
    computed = float(issue.compute_fs * issue.step)
    alone = times.l2_latency + times.copy + taken_in + issue.step_fs + computed * issue.after_products
    return round(longer_by((taken_in, computed), max(alone, computed), running))
