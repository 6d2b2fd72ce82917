"""Does a trace file hold what was captured, and is anything else refused?"""

import io
import json
import zipfile

import numpy as np
import pytest

from swizzle_benchmarks.suite.gemm import gemm
from swizzle_sim.capture.trace_file import ARRAYS, TOLD, read_trace, write_trace
from swizzle_sim.capture.user_kernel import kernel_of
from tests.capture.same_trace import assert_equal_traces
from xcd_model.errors import CaptureError

MANIFEST = {
    "facts": {
        "name": "k", "summary": "a kernel", "sharing": "all", "problem": {"M": 100}, "dtype": "fp16", "tiles": [4, 4],
        "programs": None, "flops": 1.0,
    },
    "launch": {"grid": [16]},
    "grid": [16],
    "grids": [{"grid": [4], "tiles": [2, 2], "sizes": {"M": 50}}],
    "resources": {
        "gfx942": {"threads": 256, "vgprs": 64, "lds_bytes": 0, "instructions_in_flight": 4, "source": "compiled"},
        "gfx950": {"error": "out of LDS"},
    },
    "source": "text",
    "how": "followed",
    "triton": "3.9.0",
}  # fmt: skip


@pytest.fixture
def trace():
    return gemm(M=100, N=100, K=100, BLOCK_M=32, BLOCK_N=32, BLOCK_K=32).build_trace(128)


@pytest.fixture
def written(tmp_path, trace):
    path = tmp_path / "k.trace.npz"
    write_trace(path, trace, MANIFEST)
    assert [p.name for p in tmp_path.iterdir()] == [path.name]
    return path


def test_read_gives_what_was_written(written, trace):
    found, manifest = read_trace(written)
    assert_equal_traces(trace, found)
    assert all(np.array_equal(getattr(trace, name), getattr(found, name)) for name in (*ARRAYS, *TOLD))
    assert manifest["facts"] == MANIFEST["facts"]


def test_a_file_of_before_passes_were_known_has_a_line_a_pass(tmp_path, trace):
    object.__setattr__(trace, "waves", trace.waves[:, :3])
    write_trace(tmp_path / "old.trace.npz", trace, MANIFEST)
    found, _ = read_trace(tmp_path / "old.trace.npz")
    assert np.array_equal(found.waves[:, :3], trace.waves)
    assert np.array_equal(found.l1_passes, trace.requests_of_waves)


def test_a_trace_is_a_kernel(written):
    kernel = kernel_of(*read_trace(written))
    assert (kernel.name, kernel.grid.shape, kernel.resources.vgprs) == ("k", (4, 4), 64)
    assert [grid.launch for grid, _ in kernel.at_grids()] == [(4,)]
    with pytest.raises(CaptureError, match="lines of 128 B"):
        kernel.build_trace(64)
    with pytest.raises(CaptureError, match="no inputs"):
        kernel.make_inputs(0)


def test_a_kernel_that_does_not_compile_for_the_gpu_is_refused(written):
    with pytest.raises(Exception, match="gfx950: out of LDS"):
        kernel_of(*read_trace(written), arch="gfx950")


def test_every_damaged_byte_is_noticed(written, tmp_path):
    whole = written.read_bytes()
    draw = np.random.default_rng(0)
    noticed = 0
    for at in [*range(0, 120, 7), *draw.integers(0, len(whole), 150).tolist()]:
        bad = bytearray(whole)
        bad[at] ^= 0x41
        path = tmp_path / "bad.trace.npz"
        path.write_bytes(bytes(bad))
        try:
            found, _ = read_trace(path)
        except CaptureError as error:
            assert error.code == "trace-file"
            noticed += 1
        else:  # a byte that zip keeps twice or not at all
            assert all(np.array_equal(getattr(found, name), getattr(read_trace(written)[0], name)) for name in ARRAYS)
    assert noticed > 100
    for cut in (0, 1, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:cut])
        with pytest.raises(CaptureError, match=r"bad\.trace\.npz"):
            read_trace(path)


@pytest.mark.parametrize("data", [b"junk", b""])
def test_what_is_no_trace_file_is_refused_without_advice_to_load_pickles(tmp_path, data):
    (tmp_path / "j.trace.npz").write_bytes(data)
    said = r"no trace file, or damaged \(File is not a zip file\); capture again"
    with pytest.raises(CaptureError, match=said) as refused:
        read_trace(tmp_path / "j.trace.npz")
    assert "pickle" not in str(refused.value)


def changed(path, name, array):
    """Same file with one array exchanged, as a careful forger would."""
    with np.load(path) as held:
        arrays = {**dict(held), name: array}
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    path.write_bytes(buffer.getvalue())


def test_an_exchanged_array_is_noticed(written, trace):
    changed(written, "base", trace.base[::-1].copy())
    with pytest.raises(CaptureError, match="damaged"):
        read_trace(written)


def test_another_version_is_refused(written):
    with np.load(written) as held:
        manifest = json.loads(held["manifest"].tobytes())
    manifest["format_version"] = 1
    changed(written, "manifest", np.frombuffer(json.dumps(manifest).encode(), np.uint8))
    with pytest.raises(CaptureError, match=r"format version 1.*reads version 2: capture again"):
        read_trace(written)


def test_other_files_are_refused(tmp_path):
    path = tmp_path / "x.npz"
    with pytest.raises(CaptureError, match="No such file"):
        read_trace(path)
    np.savez(path, a=np.zeros(3))
    with pytest.raises(CaptureError, match="no manifest"):
        read_trace(path)
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("manifest.npy", b"x")
    with pytest.raises(CaptureError, match=r"x\.npz"):
        read_trace(path)


def test_nothing_is_left_where_writing_fails(tmp_path, trace):
    (tmp_path / "k.npz").mkdir()
    with pytest.raises(CaptureError, match="cannot be written"):
        write_trace(tmp_path / "k.npz", trace, MANIFEST)
    with pytest.raises(CaptureError, match="cannot be written"):
        write_trace(tmp_path / "none" / "k.npz", trace, MANIFEST)
    assert [p.name for p in tmp_path.iterdir()] == ["k.npz"]
