"""Named orders of measured rows: which tile each hardware workgroup computes, over a grid of rows and columns.

Tiles are numbered row-major, ``m * cols + n``. Every order is a permutation (morton of square grids).

Source: H200: the remapping that the calibration kernels were launched with; MI355X and MI300X: AITER ``remap_xcd``,
HipKittens (arXiv 2511.08083) Algorithm 1, Triton's GROUP_SIZE_M, and the head orders of arXiv 2511.02132.
"""

from __future__ import annotations

import re

import numpy as np

from xcd_model.errors import UnknownName

SCATTER = 7919  # the odd constant that the scattered launches multiplied by
H200_ORDERS = ("row", "col", "grp4", "grp8", "grp16", "band4", "band8", "band8grp4", "band8grp8", "morton", "scatter")
HEAD_ORDERS = ("head-fast", "swizzled-head-first")


def tiles_of(order: str, rows: int, cols: int, xcds: int) -> np.ndarray:
    """Row-major tile that each hardware workgroup computes.

    Returns
    -------
    tile : (rows * cols,) int64
    """
    pid = np.arange(rows * cols, dtype=np.int64)
    plain = {"row": lambda: pid, "col": lambda: pid % rows * cols + pid // rows, "morton": lambda: morton(pid, cols)}
    plain["scatter"] = lambda: pid * SCATTER % pid.size
    plain["head-fast"] = plain["col"]
    plain["swizzled-head-first"] = lambda: heads_apart(pid, rows, cols, xcds)
    if order in plain:
        return plain[order]()
    if found := re.fullmatch(r"(contiguous|chunked(\d+))\+group(\d+)", order):
        pid = chunked(pid, xcds, int(found[2])) if found[2] else contiguous(pid, xcds)
        return grouped(pid, rows, cols, int(found[3]))
    if (found := re.fullmatch(r"run(\d+)", order)) and pid.size % int(found[1]) == 0:
        return scattered_runs(pid, int(found[1]))
    if order and (found := re.fullmatch(r"(?:band(\d+))?(?:grp(\d+))?", order)):
        pid = bands(pid, int(found[1])) if found[1] else pid
        return grouped(pid, rows, cols, int(found[2])) if found[2] else pid
    raise UnknownName("order", order, [*H200_ORDERS, *HEAD_ORDERS, "contiguous+group4", "chunked64+group8"])


def scattered_runs(pid: np.ndarray, tiles: int) -> np.ndarray:
    """Runs of so many neighbours, scattered."""
    return pid // tiles * SCATTER % (pid.size // tiles) * tiles + pid % tiles


def morton(pid: np.ndarray, cols: int) -> np.ndarray:
    """Bits of the id dealt to column and row in turn; for square grids whose side is a power of two."""
    m, n = (sum((pid >> 2 * bit + odd & 1) << bit for bit in range(10)) for odd in (1, 0))
    return m * cols + n


def heads_apart(pid: np.ndarray, rows: int, cols: int, xcds: int) -> np.ndarray:
    """Each XCD works through heads (rows) of its own, one after the other."""
    on_xcd = pid // xcds
    return (pid % xcds * (rows // xcds) + on_xcd // cols) * cols + on_xcd % cols


def contiguous(pid: np.ndarray, xcds: int) -> np.ndarray:
    """Each XCD gets a contiguous run of ids; exact for any grid."""
    longest, tall = -(-pid.size // xcds), pid.size % xcds or xcds
    xcd, local = pid % xcds, pid // xcds
    return np.where(xcd < tall, xcd * longest + local, tall * longest + (xcd - tall) * (longest - 1) + local)


def chunked(pid: np.ndarray, xcds: int, chunk: int) -> np.ndarray:
    """Runs of ``chunk`` ids an XCD, side by side; ids beyond the last full block stay."""
    block = xcds * chunk
    local = pid // xcds
    mapped = local // chunk * block + pid % xcds * chunk + local % chunk
    return np.where(pid < pid.size // block * block, mapped, pid)


def bands(pid: np.ndarray, count: int) -> np.ndarray:
    """``count`` contiguous bands taken in turn."""
    return pid % count * (pid.size // count) + pid // count


def grouped(pid: np.ndarray, rows: int, cols: int, size: int) -> np.ndarray:
    """Bands of ``size`` rows, each walked column by column."""
    group, inside = np.divmod(pid, size * cols)
    height = np.minimum(rows - group * size, size)
    return (group * size + inside % height) * cols + inside // height
