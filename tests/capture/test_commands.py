"""Do capture, init-kernel and KERNEL files work as typed?"""

import errno
import json
import os
import re
import shutil
from importlib import metadata
from pathlib import Path

import pytest

from swizzle_sim.base import release
from swizzle_sim.capture import process, user_kernel
from swizzle_sim.capture.worker import declared, describe
from swizzle_sim.workload.kernels import kernel
from tests.capture.same_trace import needs_triton
from tests.in_process import runner
from xcd_model.errors import CaptureError, SwizzleSimError

KERNELS = Path(__file__).parent / "kernels"
# a log gets such a line every ten seconds, so on a loaded machine alone
PROGRESS = re.compile(r"^capturing \w+: \d+ of \d+ workgroups\n", re.MULTILINE)


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    """Type a command in an empty folder; its status, stdout and stderr, without what is said only of a slow capture."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    typed = runner(monkeypatch, capsys, tmp_path)

    def type_(*words):
        status, out, err = typed(*words)
        return status, out, PROGRESS.sub("", err)

    return type_


@needs_triton
def test_a_file_is_a_kernel_and_its_trace_is_too(run, monkeypatch, tmp_path):
    shutil.copy(KERNELS / "matmul.py", tmp_path / "mine.py")
    sizes = ("M=200", "N=100", "K=64")
    status, out, err = run("capture", "mine.py", *sizes, "-o", "m.trace.npz", "--json")
    assert (status, err) == (0, "capturing ...\n")
    document = json.loads(out)
    assert document["problem"]["M"] == 200
    assert document["checked_workgroups"][0] == 0  # a corner
    assert set(document["resources"]) == {"gfx942", "gfx950"}

    by_file = run("score", "mine.py", *sizes, "--swizzle", "identity", "--json")
    by_trace = run("score", "m.trace.npz", "--swizzle", "identity", "--json")
    documents = [json.loads(out) for _, out, _ in (by_file, by_trace)]
    following = [document["advice"].pop("next") for document in documents]  # commands on what was scored
    assert documents[0].pop("own_remap")["constants"] == {"GROUP_M": 4}  # read from the source, which a trace has not
    assert documents[0] == documents[1]
    assert (by_file[0], by_file[2]) == (by_trace[0], by_trace[2]) and by_file[0] == 0
    assert following[0] and len(following[0]) == len(following[1])
    assert all("mine.py M=200 N=100 K=64 " in one for one in following[0])
    assert all("m.trace.npz" in one for one in following[1])

    def nobody(*args, **options):
        raise AssertionError("captured again")

    monkeypatch.setattr(user_kernel, "worker_reply", nobody)
    assert run("score", "mine.py", *sizes, "--swizzle", "identity", "--json") == by_file
    (tmp_path / "mine.py").write_text((tmp_path / "mine.py").read_text() + "\n# another text\n")
    with pytest.raises(AssertionError, match="captured again"):
        run("score", "mine.py", *sizes, "--swizzle", "identity", "--json")

    status, _, err = run("score", "m.trace.npz", "M=300", "--swizzle", "identity")
    assert (status, "m.trace.npz was captured at M=200 N=100" in err) == (2, True)


GOOD = (KERNELS / "matmul.py").read_text()


@needs_triton
def test_bad_kernels_are_refused_by_name_and_nothing_is_written(run, tmp_path):
    for text, words, message in (
        (GOOD.replace('"stride_cn": 1,', ""), [], "is not given stride_cn"),
        ("import nowhere_at_all\n", [], "k.py:1: ModuleNotFoundError"),
        (GOOD, ["M=2000000000", "N=2000000000"], "a program id has 31 bits"),
    ):
        (tmp_path / "k.py").write_text(text)
        status, out, err = run("capture", "k.py", *words, "-o", "k.trace.npz")
        assert (status, out) == (2, ""), message
        assert message in err
        assert not (tmp_path / "k.trace.npz").exists()
    for words, message in (
        (["none.py", "-o", "k.trace.npz"], "none.py: no such file"),
        (["k.py", "-o", "k.txt"], "ends in .npz"),
        (["k.py", "-o", "none/k.npz"], "there is no folder none"),
        (["nothing", "-o", "k.trace.npz"], "no kernel is called 'nothing'"),
    ):
        status, _, err = run("capture", *words)
        assert (status, message in err) == (2, True), err


def test_capture_looks_at_its_folder_before_it_captures(run, monkeypatch):
    def refuse(**options):
        raise OSError(errno.EACCES, os.strerror(errno.EACCES))

    def captured(*args, **options):
        raise AssertionError("captured, and has nowhere to write to")

    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    monkeypatch.setattr("swizzle_sim.cli.capture._captured", captured)
    status, _, err = run("capture", "gemm", "--out", "g.trace.npz")
    assert (status, "cannot be written (Permission denied)" in err) == (2, True), err


@needs_triton
@pytest.mark.parametrize("name", [None, "foo"])
def test_a_file_without_a_declaration_says_how_to_begin(tmp_path, name):
    path = tmp_path / f"{tmp_path.name}.py"
    path.write_text("def foo():\n    pass\n")
    with pytest.raises(CaptureError, match=rf"start with: swizzle-sim init-kernel {path.name}:{name or 'FUNCTION'}"):
        declared(path, name)


@needs_triton
@pytest.mark.parametrize(
    ("text", "sizes", "message"),
    [
        (GOOD, {"MM": 3}, "no size of kernel matmul is called 'MM'"),
        (GOOD, {"M": 0}, "M = 0: a size is an integer from 1"),
        (GOOD + "\nother = kernel\n", {}, "2 of them: kernel, other; say which: "),
        (GOOD.replace("kernel = Kernel(", "kernel = dict("), {}, "TypeError"),
        (GOOD.split("kernel = Kernel(")[0], {}, "not none; start with: swizzle-sim init-kernel"),
        ("def f(:\n", {}, ":1: SyntaxError"),
        (GOOD.replace("(s.M, s.K)", "(s.M, s.Q)"), {}, "arguments raises AttributeError: no size is called Q"),
        (GOOD.replace("(s.M, s.K)", "..."), {}, "matmul: a_ptr: shape is still `...`; fill it in"),
        (GOOD.replace('dtype="fp16"', 'dtype="half"'), {}, "dtype = 'half'"),
        (GOOD.replace('"stride_ak": 1', '"stride_ak": ...'), {}, "matmul: stride_ak: the value is still `...`"),
        (GOOD.replace('"stride_ak": 1', '"stride_ak": 2**70'), {}, f"stride_ak = {2**70} does not fit 64"),
    ],
)
def test_bad_declarations_are_refused_by_name(tmp_path, text, sizes, message):
    path = tmp_path / f"{tmp_path.name}.py"
    path.write_text(text)
    with pytest.raises(SwizzleSimError) as error:
        describe({"path": str(path), "name": None, "sizes": sizes})
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("version", "message"),
    [
        (None, "pip install -e '.[triton]' in the checkout, with Python 3.11 or newer"),
        ("3.4.1", "Triton 3.4.1 is installed; capture reaches into its interpreter, and was tested with 3.8 and 3.9"),
    ],
)
def test_without_the_right_triton_the_error_says_what_to_install(run, monkeypatch, version, message):
    def installed(name):
        if version is None:
            raise metadata.PackageNotFoundError(name)
        return version

    monkeypatch.setattr(process.check_installed.__globals__["metadata"], "version", installed)
    status, _, err = run("capture", KERNELS / "matmul.py", "-o", "m.trace.npz")
    assert (status, message in err, "pip install" in err) == (2, True, True)
    if version is None:
        monkeypatch.setattr("platform.system", lambda: "Darwin")
        assert "Triton has no wheel for Darwin. In a container: docker run --rm -v " in release.triton_hint()


@pytest.mark.parametrize("version", ["3.9.1", "3.10.0", "4.0.0"])
def test_an_error_under_a_newer_triton_says_with_which_it_worked(monkeypatch, version):
    monkeypatch.setattr(process.metadata, "version", lambda name: version)
    assert process.check_installed() == version
    assert ("pip install 'triton==3.9.*'" in process.untested()) == (version != "3.9.1")


def test_init_kernel_writes_what_the_source_tells(run, tmp_path):
    shutil.copy(kernel("spmv").launch.path, tmp_path / "sparse.py")
    status, out, _ = run("init-kernel", "sparse.py:spmv", "--json")
    written = tmp_path / "spmv_kernel.py"
    assert (status, json.loads(out)["written"]) == (0, "spmv_kernel.py")
    assert json.loads(out)["to_complete"] == ["indptr_ptr", "indices_ptr", "values_ptr", "x_ptr", "y_ptr", "grid"]
    text = written.read_text()
    assert '"indptr_ptr": Array(shape=..., dtype="int32", is_index=True)' in text
    assert '"x_ptr": Array(shape=..., dtype="fp16"),' in text
    assert '"y_ptr": Array(shape=..., dtype="fp16", role="out")' in text
    status, _, err = run("init-kernel", "sparse.py:spmv")
    assert (status, "exists and is not overwritten" in err, written.read_text()) == (2, True, text)


def test_init_kernel_knows_grids_strides_and_autotuners(run, tmp_path):
    (tmp_path / "k.py").write_text(
        "import triton\nimport triton.language as tl\n\n"
        "@triton.autotune(configs=[triton.Config({'BM': 32, 'BN': 16}, num_warps=8)], key=['M'])\n"
        "@triton.jit\n"
        "def f(x, y, M, stride_x, eps, BM: tl.constexpr, BN: tl.constexpr, FAST: tl.constexpr = True):\n"
        "    p = x + tl.program_id(2) * stride_x\n"
        "    p += tl.arange(0, BM)\n"
        "    tl.atomic_add(y, tl.load(p) + eps)\n"
    )
    assert run("init-kernel", "k.py:f", "--out", "d.py")[0] == 0
    text = (tmp_path / "d.py").read_text()
    for line in (
        '"x": Array(shape=..., dtype="fp16"),',
        '"y": Array(shape=..., dtype="fp16", role="inout"),',
        '"M": s.M,',
        '"stride_x": ...,',
        '"eps": 1.0,',
        "# constants, num_warps and num_stages that are not here: the autotuner's; config=0 takes its first",
        "grid=lambda s: (..., ..., ...),",
    ):
        assert line in text
    assert "FAST" not in text
    assert '"BM"' not in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["k.py"], "write FILE:FUNCTION"),
        (["none.py:f"], "none.py: cannot be read"),
        (["bad.py:f"], "bad.py:1:"),
        (["k.py:g"], "no @triton.jit function g at the top level; there is none"),
    ],
)
def test_init_kernel_refuses_by_name(run, tmp_path, words, message):
    (tmp_path / "k.py").write_text("def f(x):\n    pass\n")
    (tmp_path / "bad.py").write_text("def f(:\n")
    status, _, err = run("init-kernel", *words)
    assert (status, message in err) == (2, True), err
