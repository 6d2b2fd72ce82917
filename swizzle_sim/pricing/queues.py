"""How much longer a step of a pipelined loop takes where several workgroups of a CU queue for the same units.

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

from xcd_model import Gpu, IssueModel, Trace
from xcd_model.replay.service_times import service_times_of


def step_time(services: Sequence[float], elsewhere: float, n: int) -> float:
    """Time of a step of each of ``n`` workgroups, in the unit of its parts.

    Parameters
    ----------
    services : sequence of float
        Of a step in each queue, alone there.
    elsewhere : float
        Of a step in none of them.
    n : int
        Workgroups, at least 1.
    """
    there, step = [0.0] * len(services), 0.0
    for among in range(1, n + 1):
        waits = [service * (1 + others) for service, others in zip(services, there, strict=True)]
        step = elsewhere + sum(waits)
        there = [among * wait / step if step else 0.0 for wait in waits]
    return step


def longer_by(services: Sequence[float], alone: float, n: int) -> float:
    """How much longer a step of ``n`` workgroups takes than queues explain that serve one burst after the other.

    Parameters
    ----------
    services, n
        See `step_time`.
    alone : float
        Step of one workgroup, less than its parts where it loads for one step and computes another.
    """
    elsewhere = max(0.0, alone - sum(services))
    mixed = alone + step_time(services, elsewhere, n) - step_time(services, elsewhere, 1)
    return max(0.0, mixed - max(alone, n * max(services)))


def queued_fs(issue: IssueModel, gpu: Gpu, sent: Trace, running: int) -> int:
    """What a step's loads go out later for it [fs]; 0 where more than one step is loaded ahead, which would hide it.

    Parameters
    ----------
    issue : IssueModel
        Of a pipelined loop, without it.
    gpu : Gpu
        Of which it is known how fast a CU takes in.
    sent : Trace
        Of the workgroups that are dispatched.
    running : int
        Workgroups on the fullest CU at the same time, at least 1.

    Notes
    -----
    The lone step is that of data in the L2, and a CU takes in at its own rate, all that is loaded.
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
