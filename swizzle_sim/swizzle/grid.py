"""The grid a kernel is launched on, and what its coordinates are called."""

from __future__ import annotations

from dataclasses import dataclass

from xcd_model.errors import SizeError

MAX_WORKGROUPS = 2**31 - 1  # a program id is a signed 32-bit integer on the device


@dataclass(frozen=True)
class Grid:
    """A launch grid, and the tiles that a one-dimensional launch is decoded into.

    Parameters
    ----------
    launch : tuple of int
        Workgroups along x, y, z; one to three numbers, each at least 1.
    tiles : tuple of int, optional
        ``(num_pid_m, num_pid_n)`` where a one-dimensional launch is decoded row-major by the kernel:
        ``pid = pid_m * num_pid_n + pid_n``. A two-dimensional launch needs none: there
        ``pid_m = tl.program_id(0)``, ``pid_n = tl.program_id(1)``.

    Raises
    ------
    SizeError
        If a side is not a positive integer, the grid has more than 2**31 - 1 workgroups,
        or ``tiles`` does not multiply to the number of workgroups.

    Notes
    -----
    The hardware counts workgroups x fastest: ``pid = x + gx * (y + gy * z)``. That linear id is what
    ``pid`` means on every grid.
    """

    launch: tuple[int, ...]
    tiles: tuple[int, int] | None = None

    def __post_init__(self):
        if not 1 <= len(self.launch) <= 3:
            raise SizeError(f"grid {self}: a launch has one to three sides, not {len(self.launch)}")
        for side in (*self.launch, *(self.tiles or ())):
            if not isinstance(side, int) or isinstance(side, bool) or side < 1:
                raise SizeError(f"grid {self}: each side is an integer of at least 1, not {side!r}")
        if self.num_pids > MAX_WORKGROUPS:
            raise SizeError(
                f"grid {self}: {self.num_pids} workgroups; a program id has 31 bits, so at most {MAX_WORKGROUPS}"
            )
        if self.tiles and (len(self.launch) != 1 or self.tiles[0] * self.tiles[1] != self.num_pids):
            raise SizeError(
                f"grid {self}: {self.tiles[0]} x {self.tiles[1]} tiles are not {self.num_pids} workgroups in a row"
            )

    def __str__(self) -> str:
        text = "x".join(str(side) for side in self.launch)
        return f"{text} ({self.tiles[0]}x{self.tiles[1]} tiles)" if self.tiles else text

    @property
    def num_pids(self) -> int:
        """Workgroups in the whole grid."""
        total = 1
        for side in self.launch:
            total *= side
        return total

    @property
    def shape(self) -> tuple[int, int] | None:
        """``(num_pid_m, num_pid_n)``, or None where the grid has no two tile axes."""
        if self.tiles:
            return self.tiles
        return (self.launch[0], self.launch[1]) if len(self.launch) == 2 else None

    @classmethod
    def parse(cls, text: str) -> Grid:
        """Read ``4096``, ``64x64`` or ``8x16x4``.

        Raises
        ------
        SizeError
            If the text is not one to three positive integers joined by ``x``.
        """
        sides = text.lower().strip().split("x")
        if not all(side.strip().isascii() and side.strip().isdigit() for side in sides):
            raise SizeError(
                f"grid {text!r}: write one to three positive integers joined by x, such as 4096, 64x64 or 8x16x4"
            )
        return cls(tuple(int(side) for side in sides))
