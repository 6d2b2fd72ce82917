"""What each published row ran: kernel, sizes and order of a number that a table states in words."""

from __future__ import annotations

from dataclasses import dataclass, field

QUANTITY = {
    "TCC_HIT": "l2_hits",
    "TCC_MISS": "l2_misses",
    "L2 read misses": "l2_read_misses",
    "L2 hit rate": "l2_hit_pct",
    "L1 hit rate": "l1_hit_pct",
    "throughput": "throughput_tflops",
}
UNIT = {
    "TCC_HIT": "requests",
    "TCC_MISS": "requests",
    "L2 read misses": "requests",
    "L2 hit rate": "%",
    "L1 hit rate": "%",
    "throughput": "TFLOPS",
}


@dataclass(frozen=True)
class Case:
    """Kernel of `workloads.from_row`, its sizes, and an order of `workloads.orders`."""

    kernel: str
    problem: dict[str, int] = field(hash=False)
    order: str


_TUTORIAL = {"M": 4096, "N": 4096, "K": 8192, "BM": 256, "BN": 256, "BK": 64}
_CUBE = {"M": 8192, "N": 8192, "K": 8192, "BM": 256, "BN": 256, "BK": 64}
GROUPED = "contiguous+group4"
PERSISTENT = ((4352, 4352), (3328, 5120), (4096, 5120), (4096, 6144), (4096, 7936), (8192, 7936))
_COPY = {"n_items": 1 << 28}


def _hk(side: int) -> dict[str, int]:
    return {"M": side, "N": side, "K": side, "BM": 192, "BN": 256, "BK": 64}


def _shape(m: int, n: int, k: int = 8192, *, programs: int = 0) -> dict[str, int]:
    size = {"M": m, "N": n, "K": k, "BM": 256, "BN": 256, "BK": 64}
    return size | ({"PROGRAMS": programs} if programs else {})


def _counted_thrice(name: str, kernel: str, order: str) -> dict[str, Case]:
    """A launch of 4096 x 4096 x 4096 with a hit rate, its misses, and its reads of memory."""
    return dict.fromkeys((name, f"{name}-misses", f"{name}-reads"), Case(kernel, _shape(4096, 4096, 4096), order))


def _passes(kilobytes: int, passes: int = 16) -> Case:
    return Case("read_passes", {"WORKGROUPS": 256, "BYTES": kilobytes * 1024, "PASSES": passes}, "row")


def _gluon(age: str, groups: tuple[int, ...]) -> dict[str, Case]:
    orders = {"none": "row"} | {f"gm{g}": f"contiguous+group{g}" for g in groups}
    return {f"gluon-{age}-{name}": Case(f"gemm_gluon_{age}", _TUTORIAL, order) for name, order in orders.items()}


CASES: dict[str, Case] = {
    "copy-1gib": Case("copy", _COPY, "row"),
    **_gluon("old", (1, 4, 6)),
    **_gluon("new", (1, 4, 6, 8)),
    **_gluon("between", (1, 4, 6, 8)),
    "hk-9216-w7c216": Case("gemm_hk", _hk(9216), "contiguous+group7"),
    "hk-14592-row": Case("gemm_hk", _hk(14592), "row"),
    "hk-14592-w8c542": Case("gemm_hk", _hk(14592), "contiguous+group8"),
    "hk-14592-w8c64": Case("gemm_hk", _hk(14592), "chunked64+group8"),
    "persist-3840": Case("gemm_persistent", _shape(3840, 4096, programs=256), GROUPED),
    "persist-4352": Case("gemm_persistent", _shape(4352, 4096, programs=256), GROUPED),
    "streamk-3840": Case("gemm_cut", _shape(3840, 4096, programs=256), GROUPED),
    **{f"persist-{m}x{n}": Case("gemm_gluon_persistent", _shape(m, n, programs=256), GROUPED) for m, n in PERSISTENT},
    "drift-tiles": Case("gemm_gluon_shapes", _shape(16384, 57344), GROUPED),
    "drift-persistent": Case("gemm_gluon_persistent", _shape(16384, 57344, programs=256), GROUPED),
    **_counted_thrice("flydsl-4096-row", "gemm_flydsl", "row"),
    **_counted_thrice("flydsl-4096-gm4", "gemm_flydsl", GROUPED),
    **_counted_thrice("gluon-4096-gm4", "gemm_gluon_cube", GROUPED),
    **{f"passes-{kilobytes}k": _passes(kilobytes) for kilobytes in (32, 48, 64, 128, 192, 512)},
    "passes-4096k": _passes(4096, 2),
    **{f"passes-{kilobytes}k-l1": _passes(kilobytes) for kilobytes in (32, 48)},
    "fa-headfast": Case("attention_fly", {"H": 64, "S": 65536, "D": 128, "BM": 256, "BN": 64}, "head-fast"),
    "fa-shf": Case("attention_numa", {"H": 128, "S": 131072, "D": 128, "BM": 128, "BN": 64}, "swizzled-head-first"),
    "fa-blockfirst": Case("attention_numa", {"H": 128, "S": 131072, "D": 128, "BM": 128, "BN": 64}, "head-fast"),
    "gridmicro-none": Case("gemm_hk", _CUBE, "row"),
    **{f"gridmicro-w{w}": Case("gemm_hk", _CUBE, f"contiguous+group{w}") for w in (2, 8, 32)},
}


def shapes(m: int, n: int, k: int) -> dict[str, Case]:
    """Kernels of `mi355x_gemm_shapes.csv` at one shape, by column."""
    return {
        "one_a_tile": Case("gemm_gluon_shapes", _shape(m, n, k), GROUPED),
        "persistent": Case("gemm_gluon_persistent", _shape(m, n, k, programs=256), GROUPED),
    }


def value_range(text: str) -> tuple[float, float]:
    """Read ``"79"`` or ``"90-96"``."""
    low, _, high = text.partition("-")
    return float(low), float(high or low)
