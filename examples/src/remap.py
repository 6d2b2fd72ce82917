"""Two remaps of workgroups to XCDs, of which one is wrong where the XCDs do not divide the workgroups."""

import triton
import triton.language as tl


@triton.jit
def remap_xcd(pid, num_pids, NUM_XCDS: tl.constexpr = 8):
    per_xcd = num_pids // NUM_XCDS
    return (pid % NUM_XCDS) * per_xcd + pid // NUM_XCDS


@triton.jit
def remap_xcd_chunked(pid, num_pids, CHUNK: tl.constexpr = 4, NUM_XCDS: tl.constexpr = 8):
    whole = num_pids // (NUM_XCDS * CHUNK) * (NUM_XCDS * CHUNK)
    if pid >= whole:
        return pid
    place = pid // NUM_XCDS
    return place // CHUNK * (NUM_XCDS * CHUNK) + pid % NUM_XCDS * CHUNK + place % CHUNK
