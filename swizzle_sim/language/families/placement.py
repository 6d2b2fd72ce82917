"""`Family`, a published swizzle as a text with parameters, and the families that decide which XCD gets which ids.

Placements map ``pid`` to ``pid``, on any grid. The hardware runs workgroup w on XCD ``(w + offset) % num_xcds``, so
``pid % num_xcds`` names the XCD (up to a relabelling without effect on any L2) and ``pid // num_xcds`` counts the
earlier workgroups of this XCD.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Parameter:
    """One integer parameter of a family."""

    default: int  # default value, and the range, both ends included
    low: int
    high: int
    doc: str  # what it counts


@dataclass(frozen=True)
class Family:
    """A published swizzle, as a text of the language with parameters."""

    name: str  # name in a spec
    summary: str  # one sentence
    text: Callable[..., str]  # ``text(**params) -> str``, a text of the language; a value for every parameter
    source: str  # paper or project that published it
    parameters: Mapping[str, Parameter] = field(default_factory=dict)  # in the order in which a spec writes them
    # 0 for a placement, which maps ``pid`` to ``pid`` on any grid. 2 for an order of tiles, which reads ``num_pid_m,
    # num_pid_n`` and assigns ``pid_m, pid_n``. 3 for an order of boxes, which reads ``num_pid_x, num_pid_y, num_pid_z``
    # and assigns ``pid_x, pid_y, pid_z``.
    axes: int = 0
    # where it is a bijection, exactly: ``"always"`` or a condition of the language over ``num_pids``, ``num_pid_m``,
    # ``num_pid_n``, ``num_xcds`` and the parameters, on grids that have the axes
    condition: str = "always"

    @property
    def results(self) -> tuple[str, ...]:
        """Coordinates that its text computes."""
        return {0: ("pid",), 2: ("pid_m", "pid_n"), 3: ("pid_x", "pid_y", "pid_z")}[self.axes]


def _identity() -> str:
    return "pid = pid\n"


def _reverse() -> str:
    return "pid = num_pids - 1 - pid\n"


def contiguous_text() -> str:
    """Text of ``contiguous``; `head_groups` begins with it too."""
    # The first num_pids % num_xcds XCDs get one workgroup more, so their runs are one id longer.
    return """\
xcd = pid % num_xcds
pid = xcd * (num_pids // num_xcds) + min(xcd, num_pids % num_xcds) + pid // num_xcds
"""


def _contiguous_naive() -> str:
    return "pid = (pid % num_xcds) * (num_pids // num_xcds) + pid // num_xcds\n"


def chunked_text(chunk: int) -> str:
    """Text of ``chunked``; `windowed` begins with it too."""
    # Published with `pid > mapped`: the same map, as `mapped` would go to itself.
    return f"""\
chunk = {chunk}
block = num_xcds * chunk
mapped = (num_pids // block) * block
if pid < mapped:
    local = pid // num_xcds
    pid = (local // chunk) * block + (pid % num_xcds) * chunk + local % chunk
"""


def dealt_text(run: str) -> str:
    """Text that deals out runs of ``run`` ids, an expression of at least 1; panels begin with it too.

    The tail, less than one run per XCD, is split as `contiguous` splits a grid, so that every XCD gets as many ids as
    the hardware dispatches workgroups to it.
    """
    return f"""\
run = {run}
turns = num_pids // num_xcds // run
dealt = turns * run * num_xcds
xcd = pid % num_xcds
local = pid // num_xcds
if pid < dealt:
    pid = (local // run * num_xcds + xcd) * run + local % run
else:
    tail = num_pids - dealt
    pid = dealt + xcd * (tail // num_xcds) + min(xcd, tail % num_xcds) + local - turns * run
"""


def _row_bands(rows: int) -> str:
    return dealt_text(str(rows))


CHUNK = Parameter(64, 1, 65536, "consecutive ids an XCD gets before the next XCD's begin")

PLACEMENTS = (
    Family(
        name="identity",
        summary="Launch order: neighbouring ids on different XCDs.",
        text=_identity,
        source="hardware round robin",
    ),
    Family(
        name="reverse",
        summary="The last id first: what follows is walked backwards, behind contiguous the run of each XCD.",
        text=_reverse,
        source="longest processing time first (Graham, SIAM J. Appl. Math. 17, 1969), where work grows with the id",
    ),
    Family(
        name="contiguous",
        summary="Each XCD gets one contiguous run of ids; exact for any grid.",
        text=contiguous_text,
        source="AITER remap_xcd; Triton matmul xcd_swizzle; Gluon GEMM tutorial get_pids (one map, three spellings)",
    ),
    Family(
        name="contiguous_naive",
        summary="The short form of contiguous, right only where the XCDs share the grid evenly.",
        text=_contiguous_naive,
        source="HipKittens (arXiv 2511.08083), Iris and tritonBLAS chiplet_transform",
        # With a remainder r > 0 and at least one id each, ids 1 and num_xcds * (num_pids // num_xcds) collide.
        condition="num_pids % num_xcds == 0 or num_pids == 1",
    ),
    Family(
        name="chunked",
        summary="Each XCD gets runs of `chunk` ids, adjacent in id space; a partial last block keeps launch order.",
        text=chunked_text,
        source="HipKittens chiplet_transform_chunked (arXiv 2511.08083); tritonBLAS pid_transforms",
        parameters={"chunk": CHUNK},
    ),
    Family(
        name="row_bands",
        summary="Each XCD gets bands of `rows` consecutive ids in turn, the tail shared out evenly; one id a row.",
        text=_row_bands,
        source="block-cyclic distribution as in ScaLAPACK; chunked (arXiv 2511.08083) made exact on its tail",
        parameters={"rows": Parameter(16, 1, 65536, "consecutive ids in a band")},
    ),
)
