"""Does the kernel that the how-to page adds do what the page says of it?"""

import dataclasses
import importlib
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from swizzle_sim.workload.kernels import kernel
from tests.capture.same_trace import assert_same_trace, needs_triton
from xcd_model.errors import CaptureError, SizeError

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "suite-kernel.md"
FILES = ("bias_add_triton.py", "bias_add.py", "pyproject.toml")


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """Folder with the files of the page, and their entry points as an editable install has them."""
    folder = tmp_path_factory.mktemp("my_kernels")
    for name, text in zip(FILES, re.findall(r"```(?:python|toml)\n(.*?)```", PAGE.read_text(), re.S), strict=True):
        (folder / name).write_text(text)
    command = [sys.executable, "-W", "ignore", "-c", "import setuptools; setuptools.setup()", "-q", "egg_info"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return folder


@pytest.fixture
def installed(package, monkeypatch):
    monkeypatch.syspath_prepend(package)
    yield package
    sys.modules.pop("bias_add", None)
    importlib.invalidate_caches()


def test_the_declaration_is_short(package):
    assert len((package / "bias_add.py").read_text().splitlines()) <= 50


def test_commands_take_it(installed, typed):
    assert "bias_add" in typed("score", "no_such_kernel").err
    shown = typed("show", "bias_add", "M=100", "N=300", "--json")
    assert shown.code == 0, shown.err
    scored = typed("score", "bias_add", "M=1000", "N=3000", "--swizzle", "contiguous", "--no-compile", "--json")
    assert scored.code == 0 and scored.json["kernel"] == "bias_add"
    refused = typed("score", "bias_add", "BLOCK_M=33")
    assert refused.code == 2 and "bias_add: BLOCK_M = 33: a power of two from 1 to 4096" in refused.err


@pytest.mark.parametrize(
    ("was", "now", "told"),
    [
        ("s.M * s.N,", "s.M * s.Q,", r"bias_add\.py:\d+: kernel bias_add: AttributeError: Q is no size"),
        ("pid[1] * s.BLOCK_N", "pid[2]", r"bias_add\.py:\d+: kernel bias_add: IndexError: tuple index out of range"),
        ("in_flight=2,", "", r"bias_add\.py:\d+: kernel bias_add: TypeError: .*'in_flight'"),
        ("import numpy as np", "import nump as np", r"bias_add\.py:1: kernel bias_add: ModuleNotFoundError: .*nump"),
        ("name=", "name==", r"bias_add\.py:\d+: kernel bias_add: NameError"),
        ("access=access,", "access=access", r"bias_add\.py:\d+: kernel bias_add: SyntaxError"),
    ],
)
def test_a_fault_of_the_declaration_is_a_line_and_hides_no_other_kernel(
    installed, monkeypatch, typed, tmp_path, was, now, told
):
    text = (installed / "bias_add.py").read_text()
    assert was in text
    (tmp_path / "bias_add.py").write_text(text.replace(was, now))
    shutil.copy(installed / "bias_add_triton.py", tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    sys.modules.pop("bias_add", None)
    shown = typed("show", "bias_add", "M=100", "N=300")
    assert shown.code == 2 and re.search(told, shown.err) and len(shown.err.splitlines()) == 1
    monkeypatch.setattr("swizzle_sim.workload.kernels.kernel_names", lambda: ["bias_add", "softmax"])
    listed = typed("kernels", "--json").json
    assert [one["name"] for one in listed["kernels"]] == ["softmax"] and re.search(told, listed["broken"]["bias_add"])
    assert "broken: bias_add: " in typed("kernels").out


def test_a_fault_of_the_reference_or_the_arguments_is_a_line_too(installed):
    from bias_add import bias_add

    odd = dataclasses.replace(bias_add, reference=lambda s, x: x, arguments="M Q")()
    with pytest.raises(CaptureError, match=r"kernel bias_add: TypeError: .* takes 2 positional"):
        odd.reference(odd.make_inputs(0))
    with pytest.raises(CaptureError, match="kernel bias_add: AttributeError: Q is no size"):
        _ = odd.launch


def test_its_reference_and_its_sizes_are_checked(installed):
    work = kernel("bias_add", M=100, N=300)
    inputs = work.make_inputs(0)
    (y,) = work.reference(inputs).values()
    np.testing.assert_array_equal(y, (inputs["x"].astype(np.float32) + inputs["b"]).astype(np.float16))
    assert (work.flops, work.issued_flops) == (100 * 300, 128 * 320)
    with pytest.raises(SizeError, match=r"x has \d+ items; the kernel's offsets are 32-bit"):
        kernel("bias_add", M=1 << 20)


@needs_triton
def test_its_access_model_is_its_function(installed):
    assert_same_trace(*(kernel("bias_add", M=m, N=n) for m, n in ((100, 300), (32, 64), (1, 1))))


@needs_triton
def test_its_registers_are_the_compilers(installed):
    from swizzle_sim.capture.occupancy import compile_launch

    work = kernel("bias_add")
    found = compile_launch(work.launch, "gfx942")
    if not found.triton.startswith("3.9."):
        pytest.skip(f"figures are of Triton 3.9, this is {found.triton}")
    assert (work.resources.vgprs, work.resources.lds_bytes) == (found.vgprs, found.lds_bytes)
