"""Trace files whose digest is right and whose content is not: its digest has no key, so anybody can write one."""

import copy
import io
import json
import warnings
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from swizzle_benchmarks.suite.gemm import gemm
from swizzle_sim.capture.trace_file import ARRAYS, LATER, RESOURCES, digest_of, read_trace, write_trace
from swizzle_sim.capture.user_kernel import kernel_of
from tests.attack.conftest import attack, changed
from tests.capture.test_trace_file import MANIFEST
from xcd_model.errors import CaptureError, CompileError

EDGES = (2**63 - 1, -(2**63), 2**62, 2**31, -(2**31), 2**31 - 1, -1, 0, 1, 255)


@pytest.fixture(scope="module")
def honest(tmp_path_factory):
    """Manifest and arrays of a trace file that has every figure of a compiled kernel."""
    path = tmp_path_factory.mktemp("honest") / "k.trace.npz"
    manifest = copy.deepcopy(MANIFEST)
    manifest["resources"]["gfx942"] |= dict.fromkeys(LATER, 1)
    write_trace(path, gemm(M=100, N=100, K=100, BLOCK_M=32, BLOCK_N=32, BLOCK_K=32).build_trace(128), manifest)
    with np.load(path) as held:
        return json.loads(held["manifest"].tobytes()), {name: held[name] for name in ARRAYS}


def forge(path, manifest, arrays):
    """Write a trace file with a digest that fits."""
    text = manifest if isinstance(manifest, bytes) else json.dumps(manifest).encode()
    arrays = {name: np.asarray(array) for name, array in arrays.items()}
    packed = io.BytesIO()
    digest = np.frombuffer(digest_of(text, arrays), np.uint8)
    np.savez(packed, manifest=np.frombuffer(text, np.uint8), digest=digest, **arrays)
    path.write_bytes(packed.getvalue())
    return path


def outcome(path):
    """What a command makes of a file: a kernel whose trace can be replayed, or one line."""
    try:
        trace, manifest = read_trace(path)
        kernel = kernel_of(trace, manifest)
    except CompileError:
        return "refused"
    except CaptureError as error:
        assert error.code == "trace-file" and "\n" not in str(error), error
        return "refused"
    assert kernel.grid.num_pids == trace.n_workgroups
    touched = trace.base[trace.template.size // 2] + trace.rel[0]
    assert 0 <= touched < 2 * trace.highest_line
    lows = [int(t.base_line) for t in trace.tensors]
    assert int(trace.base.max()) + int(trace.rel.max()) < 2**62 and min(lows) >= 0
    return "read"


def test_an_honest_forgery_is_read(honest, tmp_path):
    assert outcome(forge(tmp_path / "k.trace.npz", *honest)) == "read"


@pytest.mark.parametrize("base", [2**63 - 1, 2**63 - 2**31, -(2**63)])
def test_a_base_that_would_wrap_is_refused(honest, tmp_path, base):
    manifest, arrays = honest
    bases = arrays["base"].copy()
    bases[0] = base
    path = forge(tmp_path / "k.trace.npz", manifest, {**arrays, "base": bases})
    with pytest.raises(CaptureError, match="workgroup 0, instruction 0 touches lines"):
        read_trace(path)


def test_tensors_at_the_end_of_the_address_space_are_refused(honest, tmp_path):
    manifest, arrays = honest
    for place in ([2**62, 100], [0, 2**63], [2**64, 2**64], [-5, 10]):
        bad = {**manifest, "tensors": [["a", *place, 1], *manifest["tensors"][1:]]}
        assert outcome(forge(tmp_path / "k.trace.npz", bad, arrays)) == "refused"


@st.composite
def changes(draw):
    """A name of an array, and what becomes of it."""
    name = draw(st.sampled_from(ARRAYS))
    kind = draw(st.sampled_from(["value", "dtype", "shape", "length", "empty"]))
    return (
        name,
        kind,
        draw(st.integers(0, 2**31)),
        draw(st.sampled_from(EDGES)),
        draw(st.sampled_from(["<f8", "<c16", ">i8", "<i4", "<u8", "|b1", "|i1", "<U4", "<f2"])),
    )


def apply(arrays, change):
    name, kind, at, value, dtype = change
    array = arrays[name].copy().reshape(-1)
    if not array.size:
        return arrays
    if kind == "value":
        with np.errstate(all="ignore"):
            array[at % array.size] = np.array([value], np.int64).astype(array.dtype)[0]
    elif kind == "dtype":
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            array = array.astype(np.float64).astype(dtype)
    elif kind == "shape":
        array = [array[:, None], array[:1].reshape(()), array[None]][at % 3]
    elif kind == "length":
        array = np.concatenate([array, array])[: at % (2 * array.size)]
    else:
        array = array[:0]
    return {**arrays, name: array}


@attack(120)
@given(st.lists(changes(), min_size=1, max_size=3))
def test_arrays_are_read_or_refused(honest, tmp_path_factory, listed):
    manifest, arrays = honest
    for change in listed:
        arrays = apply(arrays, change)
    outcome(forge(tmp_path_factory.getbasetemp() / "arrays.trace.npz", manifest, arrays))


values = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.sampled_from(EDGES), st.floats(), st.text(max_size=5),
    st.lists(st.integers(-2, 2), max_size=3), st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)  # fmt: skip


@attack(250)
@given(st.data())
def test_manifests_are_read_or_refused(honest, tmp_path_factory, data):
    manifest, arrays = changed(honest[0], data, values), honest[1]
    outcome(forge(tmp_path_factory.getbasetemp() / "manifest.trace.npz", manifest, arrays))


@pytest.mark.parametrize("key", RESOURCES)
def test_a_figure_of_a_kernel_is_read_within_its_bounds_alone(honest, tmp_path, key):
    least, most = RESOURCES[key]

    def with_figure(value):
        manifest = copy.deepcopy(honest[0])
        manifest["resources"]["gfx942"][key] = value
        return outcome(forge(tmp_path / "k.trace.npz", manifest, honest[1]))

    assert [with_figure(value) for value in (least, most)] == ["read"] * 2
    for value in (least - 1, most + 1, 2**63, -(2**70), True, 1.0, float("nan"), "1", None, [1]):
        assert with_figure(value) == "refused", value


def test_what_is_no_manifest_is_refused(honest, tmp_path):
    for text in (
        b"[" * 100_000,
        b'{"a":' * 50_000,
        b"[]",
        b"1",
        b"null",
        b"\xff\xfe",
        b'{"format": "swizzle-sim-trace"}',
    ):
        assert outcome(forge(tmp_path / "k.trace.npz", text, honest[1])) == "refused"


def test_a_file_that_unpacks_to_more_than_a_trace_can_be_is_refused(tmp_path):
    path = tmp_path / "bomb.trace.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        with packed.open("base.npy", "w", force_zip64=True) as member:
            member.write(b"\0" * 1000)
        packed.infolist()[0].file_size = 1 << 40  # as the directory of the file then says
    assert outcome(path) == "refused"
