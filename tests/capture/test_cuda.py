"""Are the accesses of CUDA and HIP kernels, which a compiler for the CPU takes, those that their text says?"""

import shutil
from pathlib import Path

import numpy as np
import pytest

from swizzle_sim.capture import Array, Cuda, Kernel
from swizzle_sim.capture.cuda import trace as captured
from swizzle_sim.capture.cuda.source import parameters_of
from swizzle_sim.capture.init_kernel import write_declaration
from swizzle_sim.language import Grid
from swizzle_sim.workload.kernels import kernel as registered
from xcd_model.errors import CaptureError, SizeError

FILE = Path(__file__).parent / "kernels" / "cuda_kernels.cu"
FP32 = {"dtype": "fp32"}

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="no g++")


def taken(function, arguments, grid, **cuda):
    """Capture of one launch, whose sizes are in its arguments."""
    kernel = Kernel(f"{FILE}:{function}", sizes={}, arguments=arguments, grid=grid, cuda=Cuda(**cuda))
    launch = kernel.at()
    return captured.capture_cuda(launch, kernel.grid_at(kernel.sizes_at({}), launch), line_bytes=128)


def bytes_of(trace, workgroup):
    """Sectors of each instruction of a workgroup, as (tensor, whether it writes, sorted sectors of its tensor)."""
    found = []
    for i in range(trace.start[workgroup], trace.start[workgroup + 1]):
        t = trace.template[i]
        own = slice(trace.rel_start[t], trace.rel_start[t + 1])
        line, bit = np.nonzero(trace.sectors[own, None] >> np.arange(4, dtype=np.uint8) & 1)
        tensor = trace.tensors[trace.tensor[t]]
        sector = (trace.base[i] + trace.rel[own][line] - tensor.base_line) * 4 + bit
        found.append((tensor.name, bool(trace.is_write[t]), sorted(sector.tolist())))
    return found


def sectors_of(items, item_bytes):
    return sorted({int(one) * item_bytes // 32 for one in items})


def transposition(rows, cols):
    arguments = {"in": Array(shape=(rows, cols), **FP32), "out": Array(shape=(cols, rows), **FP32, role="out"),
                 "rows": rows, "cols": cols}  # fmt: skip
    return "tiles::transpose", arguments, (-(-cols // 32), -(-rows // 32))


def transposed(rows, cols, bx, by):
    """What the text of the transposition says, instruction by instruction, and the sectors of its warps."""
    found, of_warps = [], {"loads": 0, "stores": 0}
    for name, height, width, at_x, at_y in (("in", rows, cols, bx, by), ("out", cols, rows, by, bx)):
        for j in range(0, 32, 8):
            x, y = np.meshgrid(at_x * 32 + np.arange(32), at_y * 32 + j + np.arange(8))
            item = np.where((x < width) & (y < height), y * width + x, -1)
            if (item >= 0).any():
                found.append((name, name == "out", sectors_of(item[item >= 0], 4)))
            of_warps["stores" if name == "out" else "loads"] += sum(
                len(sectors_of(warp[warp >= 0], 4)) for warp in item
            )
    return found, of_warps


def test_a_ragged_transposition_touches_what_its_text_says():
    found = taken(*transposition(70, 100), block=(32, 8), template="32")
    whole = {"loads": 0, "stores": 0}
    for workgroup in range(12):
        expected, of_warps = transposed(70, 100, workgroup % 4, workgroup // 4)
        assert bytes_of(found.trace, workgroup) == expected
        whole = {name: whole[name] + of_warps[name] for name in whole}
    assert found.sectors == whole
    assert 4 * 32 * 32 <= found.shared_bytes <= 4 * 32 * 33
    assert (found.executed, found.checked) == (12, ())


def test_workgroups_that_were_not_run_are_as_far_apart_as_their_neighbours(monkeypatch):
    given = transposition(330, 400)
    run = taken(*given, block=(32, 8), template="32")
    monkeypatch.setattr(captured, "WHOLE_S", 0.0)
    spread = taken(*given, block=(32, 8), template="32")
    assert (run.executed, spread.parts) == (143, 4)
    assert len(spread.checked) == spread.executed < 60
    for name in ("start", "base"):
        assert np.array_equal(getattr(run.trace, name), getattr(spread.trace, name))
    assert all(bytes_of(run.trace, w) == bytes_of(spread.trace, w) for w in range(143))
    assert run.sectors == spread.sectors


def gathered(index=None, **more):
    rows, width = 40, 64
    arguments = {
        "out": Array(shape=(6, width * 8), dtype="fp16", role="out"),
        "table": Array(shape=(rows, width * 8), dtype="fp16"),
        "index": Array(shape=(6, 8), dtype="int32", is_index=True),
        "scale": None,
        "width": width,
    }
    kernel = Kernel(
        f"{FILE}:gather", sizes={}, arguments=arguments, grid=6, cuda=Cuda(block=width, shared_bytes=256),
        make_inputs=lambda s, seed: {"index": index},
    )  # fmt: skip
    return captured.capture_cuda(kernel.at(), Grid((6,)), line_bytes=128, **more)


def test_an_index_that_a_warp_sums_decides_addresses():
    index = np.arange(48, dtype=np.int32).reshape(6, 8) % 5
    found = gathered(index)
    for w in range(6):
        lanes = np.arange(64 * 8)
        assert bytes_of(found.trace, w) == [
            ("index", False, sectors_of(w * 8 + np.arange(8), 4)),
            ("table", False, sectors_of([*index[w].sum() * 512 + lanes[:256], *lanes[256:]], 2)),  # the second has 0
            ("out", True, sectors_of(w * 512 + lanes, 2)),
        ]
    assert found.shared_bytes == 256
    assert set(found.trace.wave_requests.tolist()) == {1}


def two(name="out", items=64):
    return {"values": Array(shape=(64,), **FP32), name: Array(shape=(items,), dtype="fp32", role="out")}


@pytest.mark.parametrize(
    ("function", "arguments", "words"),
    [
        ("histogram", {"values": Array(shape=(64,), **FP32), "counts": Array(shape=(64,), dtype="int32")},
         r"cuda_kernels.cu:46: which bytes are touched depends on data: declare the tensor with is_index=True"),
        ("past_its_end", two(), r"cuda_kernels.cu:50: reads byte 256 of values \(256 bytes\), in workgroup \(1, "),
        ("in_assembly", two(), r"cuda_kernels.cu:57: inline assembly \(ld.global.nc.f32 .*\) is reached"),
        ("on_tensor_cores", {"values": Array(shape=(64,), dtype="fp16"), "out": Array(shape=(64,), **FP32)},
         r"not followed: cuda_kernels.cu:61: .nvcuda. has not been declared.*taken as empty: torch/extension.h"),
    ],
    ids=lambda given: given if isinstance(given, str) and given.isidentifier() else "",
)  # fmt: skip
def test_what_is_not_followed_is_named_with_its_line(function, arguments, words):
    with pytest.raises(CaptureError, match=words):
        taken(function, arguments, 2, block=32)


def test_a_kernel_finds_no_file_and_no_process():
    found = taken("curious", {"out": Array(shape=(64,), **FP32)}, 1, block=1)
    assert found.trace.n_instructions == 2
    assert found.sectors == {"loads": 0, "stores": 2}


def test_wrong_declarations_are_named():
    for change, words in (
        ({"block": (32, 64)}, "at most 1024 threads"),
        ({"block": 32, "shared_bytes": 1 << 20}, "shared_bytes = 1048576"),
    ):
        with pytest.raises(SizeError, match=words):
            taken("histogram", {"values": Array(shape=(64,), **FP32), "counts": Array(shape=(9,), **FP32)}, 1, **change)
    with pytest.raises(CaptureError, match="arguments are values; its parameters are values, counts"):
        taken("histogram", {"values": Array(shape=(64,), **FP32)}, 1, block=32)
    with pytest.raises(CaptureError, match="holds no __global__ function launch"):
        taken("launch", {}, 1, block=32)
    with pytest.raises(CaptureError, match=r"has cuda=Cuda\(block=...\)"):
        Kernel(f"{FILE}:histogram", sizes={}, arguments={}, grid=1)


def test_parameters_are_read_in_their_order():
    text = FILE.read_text(encoding="utf-8")
    assert tuple(parameters_of(text, "gather")) == ("out", "table", "index", "scale", "width")
    assert parameters_of(text, "tiles::transpose") == {
        "in": "const float *__restrict__", "out": "float *", "rows": "int", "cols": "int",
    }  # fmt: skip


def test_a_declaration_is_drafted_and_says_what_is_open(tmp_path):
    path, left = write_declaration(f"{FILE}:tiles::transpose", tmp_path / "mine.py")
    assert left == ["in", "out", "rows", "cols", "grid", "block"]
    text = path.read_text()
    assert 'Array(shape=..., dtype="fp32", role="inout"),  # float *' in text
    with pytest.raises(CaptureError, match="shape is still"):
        exec(compile(text, path, "exec"), made := {"__file__": str(path)})
        made["kernel"].at()
    with pytest.raises(CaptureError, match="cannot be read"):
        write_declaration("nowhere.cu:sgemm", None)
    with pytest.raises(
        CaptureError, match=r"declared in a Python file; draft one: swizzle-sim init-kernel sgemm.cu:FUNC"
    ):
        registered("sgemm.cu")


DECLARED = f"""
from swizzle_sim.capture import Array, Cuda, Kernel

kernel = Kernel(
    "{FILE}:tiles::transpose",
    sizes={{"M": 256, "N": 512}},
    arguments=lambda s: {{
        "in": Array(shape=(s.M, s.N), dtype="fp32"),
        "out": Array(shape=(s.N, s.M), dtype="fp32", role="out"),
        "rows": s.M,
        "cols": s.N,
    }},
    grid=lambda s: (-(-s.N // 32), -(-s.M // 32)),
    cuda=Cuda(block=(32, 8), template="32"),
)
"""


def test_commands_take_its_declaration(tmp_path, monkeypatch, capsys):
    from tests.in_process import runner

    (tmp_path / "mine.py").write_text(DECLARED)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "kept"))
    typed = runner(monkeypatch, capsys, tmp_path)
    found = typed("optimize", "mine.py", "--gpu", "mi300x", "--no-uncertainty", "--out", "run")
    assert found.code == 0, found
    assert "swizzle_tile" in (tmp_path / "run" / "best.hip").read_text() or (tmp_path / "run").is_dir()
    refused = typed("rewrite", "mine.py", "--swizzle", "row")
    assert refused.code and "best.hip" in refused.err
