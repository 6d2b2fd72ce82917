"""Is a persistent kernel captured by tile exactly what it does by program, and refused where it is not?"""

import dataclasses

import numpy as np
import pytest

from swizzle_sim.capture.capture import capture_all
from swizzle_sim.capture.check import check_tiles
from swizzle_sim.capture.user_kernel import capture_file, load, request_of
from tests.capture.same_trace import needs_triton
from tests.capture.uncompiled import uncompiled  # noqa: F401  (a fixture)
from xcd_model.errors import CaptureError

pytestmark = needs_triton
pytest.importorskip("triton")

from tests.capture.kernels import hard, softmax  # noqa: E402


@pytest.fixture(scope="module")
def both():
    """Traces of 35 tiles one by one, and of 9 programs that step through them."""
    sizes = {"M": 100, "N": 70, "K": 40}
    tiles, programs = capture_all([hard.steps.at(**sizes, PROGRAMS=35), hard.steps.at(**sizes, PROGRAMS=9)])
    return tiles.trace, programs.trace


def touched(trace, workgroup):
    span = range(int(trace.start[workgroup]), int(trace.start[workgroup + 1]))
    template = trace.template[span.start : span.stop]
    return [
        (bool(trace.is_write[t]), int(base), trace.rel[trace.rel_start[t] : trace.rel_start[t + 1]].tolist())
        for t, base in zip(template, trace.base[span.start : span.stop], strict=True)
    ]


def test_programs_are_their_tiles_in_turn(both):
    tiles, programs = both
    check_tiles("steps", tiles, programs)
    for p in (0, 4, 8):
        assert touched(programs, p) == [touch for t in range(p, 35, 9) for touch in touched(tiles, t)]


def test_one_line_elsewhere_or_one_instruction_more_is_refused(both):
    tiles, programs = both
    moved = programs.base.copy()
    at = int(programs.start[4]) + 2
    moved[at] += 1 if moved[at] % 2 == 0 else -1
    with pytest.raises(CaptureError, match="program 4 touches other lines than its tiles"):
        check_tiles("steps", tiles, dataclasses.replace(programs, base=moved))
    start = programs.start.copy()
    start[3] -= 1
    with pytest.raises(CaptureError, match=r"program 2 has .* tensor instructions, its tiles one by one"):
        check_tiles("steps", tiles, dataclasses.replace(programs, start=start))
    with pytest.raises(CaptureError, match="tensors depend on the number of programs"):
        check_tiles("steps", tiles, dataclasses.replace(programs, tensors=(*programs.tensors[:2], _longer(programs))))


def _longer(trace):
    return dataclasses.replace(trace.tensors[2], size_bytes=trace.tensors[2].size_bytes + 1)


def test_a_declared_kernel_has_tiles_for_its_grid(tmp_path, monkeypatch, uncompiled):  # noqa: F811
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    rows = load(softmax.__file__, {"ROWS": 30, "COLS": 50, "PROGRAMS": 8})
    assert (rows.grid.launch, rows.programs, rows.launch.grid) == ((30,), 8, (8,))
    assert rows.build_trace(128).n_workgroups == 30
    few = load(softmax.__file__, {"ROWS": 3, "COLS": 50, "PROGRAMS": 8})
    assert (few.grid.launch, few.programs) == ((3,), 3)
    assert all(grid.num_pids == sizes["ROWS"] for grid, sizes in rows.at_grids())


PROLOGUE = """
import triton
import triton.language as tl
from swizzle_sim.capture import Array, Kernel

@triton.jit
def scaled(s_ptr, x_ptr, n, P: tl.constexpr):
    scale = tl.load(s_ptr)
    for tile in range(tl.program_id(0), n, P):
        tl.store(x_ptr + tile, scale)

kernel = Kernel(
    scaled,
    sizes={"n": 20, "P": 6},
    arguments=lambda s: {
        "s_ptr": Array(shape=(1,), dtype="fp32"), "x_ptr": Array(shape=(s.n,), dtype="fp32", role="out"), "n": s.n,
    },
    constexprs=lambda s: {"P": s.P},
    grid=lambda s: (GRID,),
    programs="P",
)
"""


@pytest.mark.parametrize(
    ("grid", "programs", "message"),
    [
        ("min(s.P, s.n)", "P", "program 0 has 5 tensor instructions, its tiles one by one 8"),
        ("s.P", "P", "does not end at the number of tiles: say tiles="),
        ("min(s.P, s.n)", "Q", "programs = 'Q' is no size; there is: n, P"),
    ],
)
def test_what_is_not_its_tiles_is_refused(tmp_path, grid, programs, message):
    path = tmp_path / f"{tmp_path.name}.py"
    path.write_text(PROLOGUE.replace("GRID", grid).replace('programs="P"', f'programs="{programs}"'))
    with pytest.raises(CaptureError, match=message):
        capture_file(request_of(str(path), {}))


def test_empty_workgroups_and_flags_that_are_set_already():
    (found,) = capture_all([hard.flags.at()])
    assert np.diff(found.trace.start).tolist() == [4] * 8 + [0] * 3
    cleared = dataclasses.replace(hard.flags.at(), make_inputs=lambda seed: {"flag_ptr": np.full(8, 2, np.int32)})
    with pytest.raises(CaptureError, match="writes flag_ptr, whose values decide addresses"):
        capture_all([cleared])
