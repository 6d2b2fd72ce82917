"""Do kernels compute what plain Python does, with numba's private parts and without, never older than their source?"""

import os
import subprocess
import sys
from typing import NamedTuple

import numba
import numpy as np
import pytest

from xcd_model.compiled import numba_setup
from xcd_model.compiled.by_reference import by_reference
from xcd_model.compiled.numba_inline import called, inlined
from xcd_model.compiled.numba_setup import KernelCompiler, njit, uncounted


@pytest.fixture
def package(tmp_path):
    folder = tmp_path / "package"
    folder.mkdir()
    (folder / "a.py").write_text("x = 1\n")
    (folder / "b.py").write_text("y = 2\n")
    return folder


def test_any_change_of_any_file_gives_another_folder(package):
    first = numba_setup.cache_folder(package)
    assert first == numba_setup.cache_folder(package)
    (package / "b.py").write_text("y = 3\n")
    second = numba_setup.cache_folder(package)
    assert second != first
    assert second.is_dir() and not first.exists()
    (package / "b.py").rename(package / "c.py")
    third = numba_setup.cache_folder(package)
    assert third not in (first, second)
    (package / "deeper" / "still").mkdir(parents=True)
    (package / "c.py").rename(package / "deeper" / "still" / "c.py")
    moved = numba_setup.cache_folder(package)
    assert moved not in (first, second, third)
    (package / "deeper" / "still" / "c.py").write_text("y = 4\n")
    assert numba_setup.cache_folder(package) != moved


def test_a_folder_that_cannot_be_written_leads_to_the_users_cache_then_to_a_new_one(package, tmp_path, monkeypatch):
    (package / "__pycache__").write_text("in the way")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert numba_setup.cache_folder(package).parent == tmp_path / "cache" / "swizzle-sim"
    (tmp_path / "blocked").write_text("in the way")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "blocked"))
    monkeypatch.setattr(numba_setup.tempfile, "mkdtemp", lambda prefix: str(tmp_path / f"{prefix}new"))
    assert numba_setup.cache_folder(package) == tmp_path / "swizzle-sim-new"


@pytest.mark.parametrize("chosen", ["", "mine"])
def test_numba_uses_it_unless_told_otherwise(chosen, tmp_path):
    code = "import xcd_model.dispatch; from numba.core import config; print(config.CACHE_DIR)"
    where = str(tmp_path / chosen) if chosen else ""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={"PATH": "/usr/bin", "NUMBA_CACHE_DIR": where}
    )
    assert done.stdout.strip() == (where or str(numba_setup.cache_folder()))


# ---- Do kernels read tuples taken by reference as plain ones, and leave their arrays' reference counts alone?
@by_reference
class Inner(NamedTuple):
    weight: np.ndarray
    factor: int


@by_reference
class Outer(NamedTuple):
    inner: Inner
    total: np.ndarray
    signed: bool


@called
def _add(outer, at, value):
    outer.total[at] += value * outer.inner.factor
    return outer.total[at]


@uncounted(cache=False)
def _weigh(outer, n):
    for i in range(n):
        _add(outer, i % outer.total.size, outer.inner.weight[i])
    return outer.total[0] if not outer.signed else -outer.total[0]


@njit
def _counted(outer):
    inner = outer.inner
    return inner.weight.sum() + outer.total.size


def outer(dtype=np.int64, signed=False):
    return Outer(Inner(np.arange(6).astype(dtype), 3), np.array([1, 2], np.int64), signed)


def test_a_kernel_reads_fields_and_writes_what_their_arrays_hold():
    one = outer(signed=True)
    assert _weigh(one, 6) == -(1 + 3 * (0 + 2 + 4))
    assert one.total.tolist() == [19, 2 + 3 * (1 + 3 + 5)]
    kinds = {numba.typeof(outer(dtype)) for dtype in (np.int64, np.int32)}  # other fields are other types
    assert len({kind.name for kind in kinds}) == 2 and _weigh(outer(np.int32), 6) == 19


@pytest.mark.parametrize("kernel", [_counted, lambda one: _weigh(one, 6)])
def test_no_reference_to_an_array_is_kept_or_lost(kernel):
    one = outer()
    kernel(one)
    before = [sys.getrefcount(array) for array in (one.inner.weight, one.total)]
    for _ in range(5):
        kernel(one)
    assert [sys.getrefcount(array) for array in (one.inner.weight, one.total)] == before


def test_a_field_of_another_type_is_refused():
    _weigh(outer(), 6)
    (signature,) = _weigh.nopython_signatures[:1]
    kernel = _weigh.overloads[signature.args].entry_point
    with pytest.raises(TypeError):
        kernel(outer()._replace(total=None), 6)


# ---- Does the compiler of kernels give what numba's own does, and leave that as it was?
@inlined
def _mixed(values, i):
    """Operators of more types than one, a constant index, a tuple and what only literals of numba's choose."""
    pair = (values[i], np.uint64(i) << np.uint64(3))
    low, high = min(np.int64(pair[0]), i), max(i, 3)
    return low + high * 2 - (high // 3) % 5, pair[1] if i & 1 else np.uint64(low > 1 or high == 3)


@uncounted(cache=False)
def _sum(values, out):
    for i in range(values.size):
        number, bits = _mixed(values, i)
        out[i] = number + np.int64(bits) + np.int64(values[i] / 2)


def by_numba(values):
    """The same by numba's own compiler, with a closure and an expression of arrays, which kernels may not have."""
    mixed = numba.njit(getattr(_mixed, "py_func", _mixed))

    @numba.njit
    def total(values):
        def one(i):
            number, bits = mixed(values, i)
            return number + np.int64(bits)

        return np.array([one(i) for i in range(values.size)]) + (values / 2).astype(np.int64)

    return total(values)


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint8, np.float64])
def test_a_kernel_computes_what_numbas_own_compiler_makes_of_it(dtype):
    values, out = (np.arange(12) * 7 % 5).astype(dtype), np.zeros(12, np.int64)
    _sum(values, out)
    assert out.tolist() == by_numba(values).tolist()


@uncounted(cache=False, boundscheck=True)
def _set(row, i, value):
    row[0, i] = row[0, i] + value


@pytest.mark.skipif(numba.config.DISABLE_JIT or not KernelCompiler, reason="Python counts from the end")
def test_an_index_counts_from_the_front_alone():
    row = np.zeros((1, 3), np.int64)
    _set(row, 2, 5)
    assert row.tolist() == [[0, 0, 5]]
    for i in (-1, 3):
        with pytest.raises(IndexError):
            _set(row, i, 5)


# ---- Where numba's private parts are gone or were not tried: are kernels compiled without them, to the same bytes?
GONE = "del numba.core.typed_passes.NativeLowering"
GONE_TOO = "del numba.core.untyped_passes.WithLifting"
UNTRIED = "numba.version_info = numba.version_info._replace(short=(0, 1000))"
UNKNOWN = "del numba.core.options.DefaultOptions._nrt, numba.core.options.DefaultOptions.no_cpython_wrapper"


def run(change, code, **environment):
    """What a process prints in which numba is changed before we import it; a warning is an error there."""
    program = f"import sys, numba.core.typed_passes\n{change}\n{code}"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize("change", [GONE, GONE_TOO, UNTRIED])
def test_kernels_are_compiled_without_them(change):
    code = "from xcd_model.compiled.numba_setup import uncounted; print(*sorted(uncounted.keywords))"
    assert "pipeline_class" not in run(change, code)


def test_options_that_numba_no_longer_knows_are_left_out():
    code = "from xcd_model.compiled import numba_setup as n; print(n.known(_nrt=False, forceinline=True))"
    assert run(UNKNOWN, code) == "{'forceinline': True}\n"


def test_a_kernel_is_loaded_without_what_compiling_needs():
    code = (
        "import sys, numpy, xcd_model; from xcd_model.compiled import numba_setup;"
        "found = xcd_model.replay_lru(numpy.arange(6) % 2 * 128, xcd_model.gpu('mi300x').l2);"
        "print(found.tolist(), 'numba.np.linalg' in sys.modules and numba_setup.KernelCompiler is not None)"
    )
    said = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout for _ in range(2)]
    assert said[1] == "[False, False, True, True, True, True] False\n"
