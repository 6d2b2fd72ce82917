"""Orders of AMD's libraries, exactly as their kernels compute them: which tile each hardware workgroup takes.

Tiles are numbered ``w1 * n0 + w0``: ``n0`` of Tensile's dimension 0 (M), the fast one, and ``n1`` of dimension 1.

Sources: ROCm/hipBLASLt, TensileLite's graWorkGroup (WGM, WGMXCC and its group); ROCm/FlyDSL, xcd_remap_bx_by.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

XCDS, CUS = 8, 304


class Tensile(NamedTuple):
    """WorkGroupMapping (0 and 1 are launch order), WorkGroupMappingXCC (1: none) and its group (-1: the CUs)."""

    wgm: int
    xcc: int = 1
    group: int = 0

    def __str__(self) -> str:
        return f"wgm {self.wgm}" + (f", xcc {self.xcc} of {self.group}" if self.xcc > 1 else "")


def tensile(order: Tensile, n0: int, n1: int) -> np.ndarray:
    """Tile of each workgroup, (n0 * n1,) int64."""
    w = xcc_remapped(n0 * n1, order.xcc, CUS if order.group == -1 else order.group)
    w0, w1 = w % n0, w // n0
    if order.wgm > 1:
        w1, w0 = _banded(w1, w0, n1, n0, order.wgm)
    elif order.wgm < 0:
        w0, w1 = _banded(w0, w1, n0, n1, -order.wgm)
    return w1 * n0 + w0


def _banded(banded, other, n_banded: int, n_other: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Bands of ``size`` along one dimension; within a band the place is divided by the band's height."""
    block = banded // size
    serial = other + banded % size * n_other
    height = np.minimum(size, n_banded - block * size)
    return block * size + serial % height, serial // height


def xcc_remapped(n: int, xccs: int, group: int) -> np.ndarray:
    """Ids by WGMXCC, (n,) int64; those past the last whole round stay."""
    w = np.arange(n, dtype=np.int64)
    if xccs <= 1:
        return w
    if group == 0:
        mapped = w // xccs + w % xccs * (n // xccs)
    else:
        size = np.where(w < n // group * group, group, n - n // group * group)
        mapped = w // group * group + w % group // xccs + w % xccs * (size // xccs)
    return np.where(w < n // xccs * xccs, mapped, w)


def flydsl(group: int, m_tiles: int, n_tiles: int) -> np.ndarray:
    """Tile ``m * n_tiles + n`` of each workgroup of a grid launched M fastest; 0 is launch order."""
    n = m_tiles * n_tiles
    m, column = np.arange(n, dtype=np.int64) % m_tiles, np.arange(n, dtype=np.int64) // m_tiles
    if group == 0:
        return m * n_tiles + column
    row_major = m * n_tiles + column  # so its XCD is not the hardware's
    xcd = row_major % XCDS
    at = xcd * (n // XCDS) + np.minimum(xcd, n % XCDS) + row_major // XCDS
    first = at // (group * n_tiles) * group
    height = np.minimum(group, m_tiles - first)
    inside = at % (group * n_tiles)
    return (first + inside % height) * n_tiles + inside // height


def runs_then_rest(n_m: int, n_n: int, group: int, local: int) -> np.ndarray:
    """Tile ``m * n_n + n`` that each claim hands out: grouped rows, the first ``local`` in a run for each XCD."""
    w = np.arange(n_m * n_n, dtype=np.int64)
    w = np.where(w < local, w % XCDS * (local // XCDS) + w // XCDS, w)
    first = w // (group * n_n) * group
    height = np.minimum(group, n_m - first)
    inside = w % (group * n_n)
    return (first + inside % height) * n_n + inside // height
