"""The corpus: each formula in the language, with what is true of it. Formulas carry over, code does not.

``right`` says where it is a bijection: ``"every grid"``, or a condition that suffices and that has to be proved. The
counts beside some were computed by brute force over the printed formulas, on a CPU; nothing was run on a GPU.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from swizzle_sim.language import family

EVERY = "every grid"


@dataclass(frozen=True, kw_only=True)
class Remap:
    """One formula."""

    name: str  # what it is, and whose
    source: str
    text: str  # in the language
    right: str  # `EVERY`; a condition under which it is a bijection; empty where no simple one suffices
    sizes: Mapping[str, str] = field(default_factory=dict)  # names of the text that stand for counts of the grid
    # tuple of (tuple of int, int, int): A launch (sides, XCDs) with the number of distinct tiles that are computed
    # there
    fails: tuple[tuple[int, ...], int, int] | None = None


_CEIL = """\
per = (num_pids + num_xcds - 1) // num_xcds
tall = num_pids % num_xcds
tall = num_xcds if tall == 0 else tall
xcd = pid % num_xcds
local = pid // num_xcds
if xcd < tall:
    pid = xcd * per + local
else:
    pid = tall * per + (xcd - tall) * (per - 1) + local
"""
_CHUNKED = """\
if pid <= num_pids // (num_xcds * CHUNK) * (num_xcds * CHUNK):
    xcd = pid % num_xcds
    local = pid // num_xcds
    pid = local // CHUNK * num_xcds * CHUNK + xcd * CHUNK + local % CHUNK
"""
_SPATIAL = """\
local = pid // 8
pid_n = local // num_pid_m * 8 + pid % 8
pid_m = local % num_pid_m
if pid_n >= num_pid_n:
    pid_n = pid % num_pid_n
    pid_m = pid // num_pid_n
"""
_OPUS = """\
limit = num_pids // 256 * 256
local = pid // 8
rank = local // 32 * 256 + pid % 8 * 32 + local % 32 if pid < limit else pid
group = rank // (8 * num_pid_n)
first = group * 8
size = min(num_pid_m - first, 8)
start = group * 8 * num_pid_n
if pid < limit:
    pid_m = first + (rank - start) % size
    pid_n = (rank - start) // size
else:
    step = rank - max(limit, start)
    pid_m = first + step % size
    pid_n = max(limit - start, 0) // 8 + step // size
"""
_FLY = """\
q = num_pids // 8
r = num_pids % 8
xcd = pid % 8
pid = xcd * q + min(xcd, r) + pid // 8
"""
_TILELANG = """\
block = num_xcds * 16
if pid < num_pids // block * block:
    local = pid // num_xcds
    pid = local // 16 * block + pid % num_xcds * 16 + local % 16
panel_pids = 4 * num_pid_n
panel = pid // panel_pids
height = min(num_pid_m - panel * 4, 4)
step = pid % panel_pids
pid_n = num_pid_n - 1 - step // height if panel % 2 == 1 else step // height
pid_m = panel * 4 + step % height
"""
_NAIVE = "pid = pid % num_xcds * (num_pids // num_xcds) + pid // num_xcds\n"
_ROWS = "pid_m = pid // num_pid_n\npid_n = pid % num_pid_n\n"

PUBLIC = (
    Remap(name="remap_xcd", source="ROCm/aiter pid_preprocessing.py; helion", text=_CEIL, right=EVERY),
    Remap(
        name="remap_xcd_chunked",
        source="ROCm/aiter; tritonBLAS chiplet_transform_chunked (chunk 8)",
        text=_CHUNKED.replace("CHUNK", "8"),
        right=EVERY,
    ),
    Remap(
        name="remap_workgroup_spatial, multi-head",
        source="ROCm/aiter pull request 3936; rows are blocks, columns heads",
        text=_SPATIAL,
        right="num_pid_n % 8 == 0",
        fails=((32, 12), 8, 344),
    ),
    Remap(
        name="opus bf16 GEMM, with its tail",
        source="ROCm/aiter opus_gemm_pipeline_a16w16_gfx950.cuh",
        text=_OPUS,
        right="",
        fails=((12, 28), 8, 320),
    ),
    Remap(
        name="mixed MoE, two stages",
        source="ROCm/aiter pull request 4315 (FlyDSL)",
        text=_NAIVE.replace("num_xcds", "8"),
        right="num_pids % 8 == 0",
        fails=((28 * 399,), 8, 11168),
    ),
    Remap(
        name="tune_gemm",
        source="ROCm/triton pull requests 713, 722; tritonBLAS pull request 14",
        text=_NAIVE,
        right="num_pids % num_xcds == 0",
    ),
    Remap(
        name="HipKittens Algorithm 1",
        source="arXiv 2511.08083 (chunk 32, windows of 8 rows)",
        text=family("windowed(chunk=32, window=8)"),
        right=EVERY,
    ),
    Remap(name="xcd_remap_bx_by(4)", source="FlyDSL", text=_FLY + family("group_m(size=4)"), right=EVERY),
    Remap(name="rasterization2DRowXcd(4)", source="tilelang", text=_TILELANG, right=EVERY),
    Remap(
        name="opus, persistent",
        source="ROCm/aiter opus; grid.y padded to a multiple of 8",
        text="pos = pid // 8\nx = pos % num_pid_x\ny = pid % 8 * (num_pid_y // 8) + pos // num_pid_x\n",
        right="num_pid_y % 8 == 0",
    ),
    Remap(
        name="attention heads",
        source="HipKittens attention",
        text="if num_pid_y % 8 == 0:\n    y = y % 8 * (num_pid_y // 8) + y // 8\n",
        right=EVERY,
    ),
    Remap(name="MXFP8", source="Primus-Turbo", text=_FLY, right=EVERY),
    Remap(
        name="swizzled head-first",
        source="ROCm/rocm-libraries pull request 9480 (rocke); rows are blocks, columns heads",
        text="bx = pid % (8 * num_pid_m)\npid_m = bx // 8\n"
        "pid_n = bx % 8 * (num_pid_n // 8) + pid // (8 * num_pid_m)\n",
        right="num_pid_n % 8 == 0",
    ),
    Remap(name="persistent tile index", source="Gluon, static persistent kernels", text=_CEIL, right=EVERY),
    Remap(
        name="remap whose result is dropped", source="ROCm/aiter a8w8 blockscale GEMM", text="pid = pid\n", right=EVERY
    ),
)

_REALISTIC = "realistic: passes the grids that most tests try"
WRONG = (
    Remap(
        name="GROUP_M = 32, the last group's height not used",
        source=_REALISTIC,
        text="group = min(32, num_pid_m)\nper = group * num_pid_n\npid_m = pid // per * group + pid % per % group\n"
        "pid_n = pid % per // group\n",
        right="num_pid_m <= 32",
        fails=((33, 2), 8, 65),
    ),
    Remap(
        name="bands of 32 columns, the last one short",
        source=_REALISTIC,
        text="group = min(32, num_pid_n)\nper = group * num_pid_m\npid_n = pid // per * group + pid % per % group\n"
        "pid_m = pid % per // group\n",
        right="num_pid_n <= 32",
        fails=((2, 33), 8, 65),
    ),
    Remap(
        name="a plane remapped only if gridDim.x > 32",
        source=_REALISTIC,
        text="if num_pid_x > 32:\n"
        "    pid = pid % num_xcds * (num_pids // num_xcds) + pid // num_xcds\n"
        "    x = pid % num_pid_x\n    y = pid // num_pid_x\n",
        right="num_pid_x <= 32",
    ),
    Remap(
        name="naive contiguous runs from 304 workgroups on",
        source=_REALISTIC,
        text="if num_pids >= 304:\n    " + _NAIVE + _ROWS,
        right="num_pids % num_xcds == 0",
    ),
    Remap(
        name="waves of 304 with 32 an XCD in place of 38",
        source=_REALISTIC,
        text="wave = pid // 304\nstep = pid % 304\nif wave * 304 + 304 <= num_pids:\n"
        "    pid = wave * 304 + step % 8 * 32 + step // 8\n" + _ROWS,
        right="num_pids < 304",
    ),
    Remap(
        name="chunk 64 with stride 32, then GROUP_M = 8",
        source=_REALISTIC,
        text="if pid < num_pids // 512 * 512:\n    local = pid // 8\n"
        "    pid = local // 64 * 512 + pid % 8 * 32 + local % 64\n" + family("group_m(size=8)"),
        right="num_pids < 512",
    ),
    Remap(
        name="naive contiguous runs from 2048 on",
        source=_REALISTIC,
        text="if num_pids >= 2048:\n    " + _NAIVE,
        right="num_pids < 2048",
        fails=((2049,), 8, 2048),
    ),
)
