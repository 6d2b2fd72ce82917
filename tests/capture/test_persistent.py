"""Is a persistent kernel captured by tile exactly what it does by program, and refused where it is not?"""

import dataclasses

import numpy as np
import pytest

from swizzle_sim.capture.capture import capture_all
from swizzle_sim.capture.check import check_tiles
from swizzle_sim.capture.user_kernel import capture_file, load, request_of
from swizzle_sim.workload.kernels import kernel
from tests import naive
from tests.capture.same_trace import needs_triton
from tests.capture.uncompiled import uncompiled  # noqa: F401  (a fixture)
from xcd_model import Claims
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
    return [naive.touches(trace, i) for i in range(int(trace.start[workgroup]), int(trace.start[workgroup + 1]))]


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


CLAIMED = """
import triton
import triton.language as tl
from swizzle_sim.capture import Array, Kernel

@triton.jit
def doubled(x_ptr, y_ptr, counter_ptr, n, B: tl.constexpr):
    tile = tl.atomic_add(counter_ptr, 1)
    while tile < n:
        at = tile * B + tl.arange(0, B)
        tl.store(y_ptr + at, 2 * tl.load(x_ptr + at))
        tile = tl.atomic_add(counter_ptr, 1)

kernel = Kernel(
    doubled, sizes={"n": 21, "P": 6},
    arguments=lambda s: {
        "x_ptr": Array(shape=(s.n * 64,), dtype="fp32"), "y_ptr": Array(shape=(s.n * 64,), dtype="fp32", role="out"),
        "counter_ptr": Array(shape=(1,), dtype="int32", role="inout", COUNTER), "n": s.n,
    },
    constexprs={"B": 64}, grid=lambda s: (min(s.P, s.n),), programs="P", CLAIMS
)
"""
COUNTER, CLAIMS = "is_counter=True", "claims=lambda s: (1, s.n)"


def claimed_in(folder, counter=COUNTER, claims=CLAIMS, text=CLAIMED):
    (folder / "claimed.py").write_text(text.replace("COUNTER", counter).replace("CLAIMS", claims))
    return load(str(folder / "claimed.py"), {})


@pytest.mark.parametrize("full", [False, True])
def test_a_claimed_tile_is_what_its_number_says(tmp_path, monkeypatch, uncompiled, full):  # noqa: F811
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    found = claimed_in(tmp_path)
    assert (found.grid.num_pids, found.programs, found.claims) == (21, 6, Claims(pools=1, local=21))
    trace, manifest = capture_file(request_of(str(tmp_path / "claimed.py"), {}), full=full)
    assert manifest["facts"]["claims"] == {"pools": 1, "local": 21, "steals": False}
    for tile in range(21):  # 64 floats are two lines, and no tile has a claim among its instructions
        first = 2 * tile, trace.tensors[1].base_line + 2 * tile
        assert touched(trace, tile) == [([(at, 15), (at + 1, 15)], at != first[0]) for at in first]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"counter": "is_index=False"}, "is_counter=True"),
        ({"claims": ""}, "give both"),
        ({"claims": "claims=lambda s: 3"}, "claims gives 3: two integers"),
        ({"claims": CLAIMS, "text": CLAIMED.replace('programs="P", ', "")}, "give programs="),
        ({"text": CLAIMED.replace("atomic_add(counter_ptr, 1)", "atomic_add(counter_ptr, 2)")}, "adding 1 to one item"),
        (
            {"text": CLAIMED.replace("    tile = tl.atomic", "    tl.store(y_ptr, 1.0)\n    tile = tl.atomic", 1)},
            "touches memory before it claims its tile",
        ),
    ],
)
def test_what_does_not_claim_tiles_is_refused_by_one_line(tmp_path, monkeypatch, uncompiled, change, says):  # noqa: F811
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(CaptureError, match=says):
        claimed_in(tmp_path, **change)


def test_fewer_programs_than_tiles_are_refused_and_do_not_hang():
    work = kernel("gemm_dynamic", M=128, N=128, K=16, BLOCK_M=16, BLOCK_N=16, BLOCK_K=16, PROGRAMS=8)
    for full in (False, True):
        with pytest.raises(CaptureError, match="launch as many programs as tiles"):
            capture_all([work.launch], full=full)
