"""Tiles that kernels of the suite multiply: which ones ``tl.dot`` takes, and how many lines their rows cover."""

from __future__ import annotations

from xcd_model.errors import SizeError

LINE_BYTES = 128  # for estimates of a trace's size only


def check_dot_block(kernel: str, *, most: int = 1024, **blocks: int) -> None:
    """Refuse blocks that ``tl.dot`` cannot multiply.

    Raises
    ------
    SizeError
        If a block is no power of two from 16 to ``most``.
    """
    for name, block in blocks.items():
        if block & (block - 1) or not 16 <= block <= most:
            raise SizeError(
                f"{kernel}: {name} = {block}: a power of two from 16 to {most}, as tl.dot and tl.arange need"
            )


def lines_of(rows: float, items: int, item_bytes: int = 2) -> float:
    """Lines that a tile covers, about: each row begins a line."""
    return rows * -(-items * item_bytes // LINE_BYTES)
