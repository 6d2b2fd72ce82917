"""Oracle of the timed replay: how long each thing takes, in whole femtoseconds [fs]."""

from fractions import Fraction

from tests.naive_hbm import splitmix

FS_PER_NS = 10**6


def rates_of(gpu):
    """Femtoseconds of everything, each rounded once, half to even, from the exact quotient."""

    def in_cycles(size, bytes_per_cycle):
        return round(Fraction(size) * 10**9 / (Fraction(bytes_per_cycle) * Fraction(gpu.clock_mhz)))

    def at_gbps(size, gbps):
        return round(Fraction(size) * 10**6 / Fraction(gbps))

    fill, piece = gpu.l2.fetch_bytes, gpu.l2.write_request_bytes
    limits = gpu.limits
    taken = limits.fill_bytes_per_cycle
    return {
        "l1": in_cycles(gpu.l1.line_bytes, gpu.l1.read_bytes_per_cycle) if gpu.l1 else 0,
        "l1_latency": round(gpu.l1.latency_ns * FS_PER_NS) if gpu.l1 else 0,
        "l2_read": in_cycles(gpu.l2.read_request_bytes, gpu.l2.read_bytes_per_cycle),
        "l2_write": in_cycles(piece, Fraction(gpu.l2.read_bytes_per_cycle, 2)),
        "fabric": in_cycles(fill, gpu.fabric_bytes_per_cycle),
        "fabric_wb": in_cycles(piece, gpu.fabric_bytes_per_cycle),
        "mall": at_gbps(fill, gpu.mall.bandwidth_gbps) if gpu.mall else 0,
        "mall_wb": at_gbps(piece, gpu.mall.bandwidth_gbps) if gpu.mall else 0,
        "hbm": at_gbps(fill, gpu.hbm.bandwidth_gbps),
        "hbm_wb": at_gbps(piece, gpu.hbm.bandwidth_gbps),
        "l2_latency": round(gpu.l2.latency_ns * FS_PER_NS),
        "l2_far": round(gpu.l2_partitions.remote_ns * FS_PER_NS) if gpu.l2_partitions else 0,
        "mall_latency": round(gpu.mall.latency_ns * FS_PER_NS) if gpu.mall else 0,
        "hbm_latency": round(gpu.hbm.latency_ns * FS_PER_NS),
        "cu_fill": in_cycles(gpu.l2.read_request_bytes, taken) if taken else 0,
        "copy": round((limits.copy_ns or 0) * FS_PER_NS),
        "gap": round((limits.workgroup_gap_ns or 0) * FS_PER_NS),
    }


def computes_for(seed, workgroup, compute_fs, speed_variation):
    """Time of one instruction: up to ``speed_variation`` 65536ths more or less, the same for all of a workgroup."""
    return compute_fs + compute_fs // 65536 * (
        splitmix(splitmix(seed) ^ workgroup) % (2 * speed_variation + 1) - speed_variation
    )


def jitter(seed, workgroup, k, jitter_fs):
    """Delay of the k-th instruction of a workgroup: 0 to ``jitter_fs``."""
    return splitmix(splitmix(splitmix(seed) ^ workgroup) ^ k) % (jitter_fs + 1)
