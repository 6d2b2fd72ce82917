"""What sizes a suite kernel may have: blocks that Triton takes, offsets that fit, traces that can be replayed."""

from __future__ import annotations

from xcd_model.errors import SizeError

MAX_TILE_ITEMS = 1 << 20  # Triton's limit on the items of one tensor
MAX_OFFSET = 2**31 - 1  # the kernels compute offsets in 32-bit integers
MAX_WORKGROUPS = 1 << 20
MAX_INSTRUCTIONS = 1 << 25  # tensor instructions of all workgroups: half a GiB of trace
MAX_TOUCHES = 8e9  # line touches: about a minute of plain replay


def check_block(kernel: str, *, most: int = 4096, **blocks: int) -> None:
    """Refuse blocks that ``tl.arange`` cannot make, or that no workgroup can hold.

    Raises
    ------
    SizeError
        If a block is no power of two from 1 to ``most``, or a tile has more than `MAX_TILE_ITEMS`.
    """
    items = 1
    for name, block in blocks.items():
        if block & (block - 1) or not 1 <= block <= most:
            raise SizeError(f"{kernel}: {name} = {block}: a block is a power of two from 1 to {most} (tl.arange)")
        items *= block
    if items > MAX_TILE_ITEMS:
        raise SizeError(f"{kernel}: {blocks} is a tile of {items} items; Triton takes at most {MAX_TILE_ITEMS}")


def check_items(kernel: str, what: str, n_items: int) -> None:
    """Refuse an array that 32-bit offsets do not reach.

    Raises
    ------
    SizeError
    """
    if n_items > MAX_OFFSET:
        raise SizeError(
            f"{kernel}: {what} has {n_items} items; the kernel's offsets are 32-bit, so at most {MAX_OFFSET}"
        )


def check_traceable(kernel: str, *, workgroups: int, instructions: float, touches: float) -> None:
    """Refuse a launch too large to trace and replay.

    Parameters
    ----------
    kernel : str
    workgroups : int
    instructions, touches : float
        Tensor instructions and line touches of all workgroups, about.

    Raises
    ------
    SizeError
    """
    if workgroups > MAX_WORKGROUPS or instructions > MAX_INSTRUCTIONS or touches > MAX_TOUCHES:
        raise SizeError(
            f"{kernel}: {workgroups} workgroups with {instructions:.1e} tensor instructions and about {touches:.1e} "
            f"line touches; the limits are {MAX_WORKGROUPS}, {MAX_INSTRUCTIONS:.1e} and {MAX_TOUCHES:.0e}: use a "
            "smaller problem or larger blocks"
        )
