"""Does a bundle run where the kernel's package is not, or is another?"""

import dataclasses
import json

import pytest

from swizzle_sim.capture import user_kernel, workload
from swizzle_sim.capture.occupancy import compile_launch
from swizzle_sim.capture.process import run_worker
from swizzle_sim.capture.user_kernel import load
from swizzle_sim.hardware.bundle import Finalist, make_bundle
from swizzle_sim.hardware.node.manifest import digest
from swizzle_sim.hardware.runs import predictor
from swizzle_sim.workload.kernels import kernel
from swizzle_sim.workload.launch import Array, Launch
from tests.capture.same_trace import needs_triton
from tests.hardware.conftest import DATA
from xcd_model import gpu
from xcd_model.errors import UnknownName

FILES = {
    "mine/__init__.py": "raise ImportError('nobody imports the whole package here')",
    "mine/ops/__init__.py": "from mine.ops import copying\n",
    "mine/ops/copying.py": """\
        import not_there
        import triton
        import triton.language as tl
        from not_there import tuned
        from typing import Optional
        import torch
        from ..common import places, SHIFT, doubled
        from ..common.back import halved
        from ._compiled import ops

        if torch.version.hip:
            from ..common.amd import EXTRA
        else:
            from ..common.nv import EXTRA

        if not torch.version.hip or True:
            from ..common.pair import ONE, ZERO

        UNUSED = not_there.something()
        WIDE: Optional[int] = 2


        def side(of: not_there.Type, by: ops.Type = ZERO) -> Optional[int]:
            return of * WIDE + by


        LIMIT = 64
        LIMIT = LIMIT * 2
        LIMIT = LIMIT * 2
        LIMIT = LIMIT * 2
        LIMIT = tl.constexpr(side(LIMIT))

        if hasattr(tl, "sum"):

            @triton.jit
            def within(at, limit: tl.constexpr):
                return at < limit


        @tuned
        @triton.jit
        def copy(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
            # a comment of the kernel's
            pid = tl.program_id(0)
            at = places.first(pid, BLOCK) + tl.arange(0, BLOCK)
            x = tl.load(x_ptr + at, mask=(at < n) & within(at, LIMIT), other=0)
            tl.store(y_ptr + at, halved(doubled(x)) + SHIFT + EXTRA - ONE, mask=at < n)


        def launch(x):
            return not_there.run(copy, x)
        """,
    "mine/common/__init__.py": """\
        import not_there
        import triton
        from .helpers import *

        SHIFT = triton.language.constexpr(3)
        """,
    "mine/common/helpers.py": """\
        import triton
        import triton.language as tl


        @triton.jit
        def doubled(x):
            return x * 2
        """,
    "mine/common/back.py": """\
        import triton
        import triton.language as tl
        from mine.ops.copying import WIDE

        HALF = tl.constexpr(WIDE)


        @triton.jit
        def halved(x):
            return x // HALF
        """,
    "mine/common/amd.py": "import triton\nEXTRA = triton.language.constexpr(1)\n",
    "mine/common/nv.py": "import triton\nEXTRA = triton.language.constexpr(1)\n",
    "mine/common/pair.py": "import triton\nONE = triton.language.constexpr(1)\nZERO = 0\n",
    "mine/common/places.py": """\
        import triton
        import triton.language as tl


        @triton.jit
        def scaled(pid, by):
            return pid * by


        @triton.jit
        def first(pid, by):
            return scaled(pid, by)


        @triton.jit
        def nobody_calls_it(pid):
            return pid
        """,
    "declared.py": """\
        from swizzle_sim.capture import Array, Kernel

        copy = Kernel(
            "mine.ops.copying:copy",
            sizes={"N": 1000},
            arguments=lambda s: {
                "x_ptr": Array(shape=(s.N,), dtype="int8"),
                "y_ptr": Array(shape=(s.N,), dtype="int8", role="out"),
                "n": s.N,
            },
            constexprs={"BLOCK": 128},
            grid=lambda s: (-(-s.N // 128),),
        )
        """,
}


def write(folder, files):
    for name, text in files.items():
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        lines = text.splitlines()
        place.write_text("\n".join(line.removeprefix("        ") for line in lines) + "\n")


@pytest.fixture
def bundle(tmp_path, monkeypatch):
    """Bundle of a kernel that lies in a package with relative imports, a decorator and more of a package not there."""
    write(tmp_path / "here", FILES)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "here"))
    found = load(f"{tmp_path / 'here' / 'declared.py'}:copy", {})
    finalist = Finalist(name="reversed", source="pid = num_pids - 1 - pid\n")
    make_bundle(found, gpu("mi300x"), [finalist], tmp_path / "bundle", check=False)
    return tmp_path / "bundle"


@needs_triton
def test_what_the_kernel_needs_of_its_package_is_in_its_file_and_runs(bundle, confirm):
    for name in ("original.py", "candidate_1.py"):
        text = (bundle / name).read_text()
        assert "# a comment of the kernel's" in text and "LIMIT = triton.language.constexpr(1024)" in text
        assert "def scaled" in text and "def doubled" in text
        for unread in ("def launch", "UNUSED", "nobody_calls_it", "not_there", "mine", "torch"):
            assert unread not in text
    assert (bundle / "kernel_original.py").read_text().startswith("import not_there")
    done = confirm(bundle, "--no-time")
    assert done.code == 0, done.err
    for entry in done.result["candidates"].values():
        assert entry["check_before"]["how"] == "bitwise"
    assert done.result["candidates"]["candidate_1"]["check_before"]["permutation"] == "equal"


@needs_triton
def test_a_file_of_no_package_finds_its_neighbours(tmp_path, confirm):
    """Two folders that are no packages, on no path: one imports from the other."""
    kernel = (
        FILES["mine/common/places.py"]
        + """
        from shared.places import first


        @triton.jit
        def copy(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
            at = first(tl.program_id(0), BLOCK) + tl.arange(0, BLOCK)
            tl.store(y_ptr + at, tl.load(x_ptr + at, mask=at < n), mask=at < n)
        """
    )
    declared = FILES["declared.py"].replace("mine.ops.copying:copy", str(tmp_path / "kernels" / "copying.py") + ":copy")
    files = {"kernels/copying.py": kernel, "shared/places.py": FILES["mine/common/places.py"], "declared.py": declared}
    write(tmp_path, files)
    found = load(f"{tmp_path / 'declared.py'}:copy", {})
    finalist = Finalist(name="reversed", source="pid = num_pids - 1 - pid\n")
    make_bundle(found, gpu("mi300x"), [finalist], tmp_path / "bundle", check=False)
    assert "def scaled" in (tmp_path / "bundle" / "original.py").read_text()
    done = confirm(tmp_path / "bundle", "--no-time")
    assert done.code == 0, done.err


SPANS = """\
        import triton
        import triton.language as tl
        from triton.language.core import _aggregate as aggregate
        from .places import first


        @aggregate
        class Span:
            first: tl.tensor
            side: tl.constexpr

            @triton.constexpr_function
            def __init__(self, first, side):
                self.first, self.side = first, tl.constexpr(side)

            @triton.jit
            def places(self):
                return self.first + tl.arange(0, self.side)


        @triton.jit
        def copy(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
            at = Span(first(tl.program_id(0), BLOCK), BLOCK).places()
            tl.store(y_ptr + at, tl.load(x_ptr + at, mask=at < n) + WIDE, mask=at < n)
        """


@needs_triton
@pytest.mark.parametrize(("wide", "says"), [("2", ""), ("open", "copy reads WIDE, a builtin_function_or_method")])
def test_a_class_of_the_language_stands_in_the_file_and_what_cannot_is_named(tmp_path, wide, says):
    files = {
        "spans.py": f"WIDE = {wide}\n".replace("2", "tl.constexpr(2)"),
        "places.py": FILES["mine/common/places.py"],
    }
    write(tmp_path / "mine", {**files, "__init__.py": "", "spans.py": SPANS + files["spans.py"]})
    path = str(tmp_path / "mine" / "spans.py")
    request = {"texts": [path], "path": path, "function": "copy", "arch": "gfx942"}
    reply = run_worker("swizzle_sim.capture.sliced_module", request, interpret=False, timeout_s=60)
    assert says in reply.get("error", "") and bool(says) == ("error" in reply)
    if not says:
        (tmp_path / "alone.py").write_text(reply["texts"][0])
        arrays = {name: Array(shape=(256,), dtype="fp32", role="inout") for name in ("x_ptr", "y_ptr")}
        constants, arguments = {"BLOCK": 128}, {**arrays, "n": 256}
        launch = Launch(
            path=tmp_path / "alone.py", function="copy", arguments=arguments, constexprs=constants, grid=(2,)
        )
        assert compile_launch(launch, "gfx942").vgprs


# ---- Is a user's kernel that of its file: for a check in a bundle, and where `import` has only the bundle?
MINE = '''\
"""A kernel of mine: the name of another one, its own source."""
from swizzle_sim import Kernel

other = Kernel(something_else, sizes={})
mine = Kernel(my_kernel, sizes={"M": 64})
'''
SMALL = {"M": 256, "N": 256, "K": 64, "BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 64}


def bundled(folder, source, **changes):
    """Manifest of a bundle with this source, which is written to its folder."""
    (folder / "kernel_original.py").write_text(source)
    found = json.loads((DATA / "h200" / "gemm" / "manifest.json").read_text())
    about = {"run": "", "replay": "lockstep", "source_sha256": digest(source.encode())}
    return {**found, **about, "gpu": {"name": "mi300x", "xcds": 8}, **changes}


@pytest.fixture
def loaded(monkeypatch):
    """Names that a file was asked for; a small GEMM stands for what the capture would give."""
    names = []

    def load(name, sizes, arch):
        names.append((name, dict(sizes), arch))
        return kernel("gemm", **SMALL)

    monkeypatch.setattr(user_kernel, "load", load)
    return names


@pytest.mark.parametrize("name", ["mine", "gemm"])
def test_a_users_kernel_comes_from_the_source_in_the_bundle(tmp_path, loaded, name):
    """Also where it has the name of a suite kernel: its source is another."""
    about = bundled(tmp_path, MINE, kernel=name, function="my_kernel", problem={"M": 64})
    found = predictor(tmp_path, about)(None)
    assert loaded == [(f"{tmp_path / 'kernel_original.py'}:mine", {"M": 64}, "gfx942")]
    assert found["kind"] == "simulated" and found["l2_requests"] > 0


def test_a_suite_kernel_comes_from_the_registry(tmp_path, loaded):
    about = bundled(tmp_path, kernel("gemm").launch.path.read_text(), problem=SMALL)
    assert predictor(tmp_path, about)(None)["l2_requests"] > 0 and loaded == []


def test_a_kernel_of_nowhere_is_refused_by_name(tmp_path, loaded):
    about = bundled(tmp_path, MINE, kernel="mine", function="unknown")
    with pytest.raises(UnknownName, match="mine"):
        predictor(tmp_path, about)(None)


def test_a_bundle_is_checked_at_small_sizes_of_the_users_own_file(monkeypatch):
    """Its name says nothing: a suite kernel may have the same."""
    asked = []
    monkeypatch.setattr(workload, "_declared", lambda name, sizes: asked.append((name, dict(sizes))))
    mine = dataclasses.replace(kernel("gemm", **SMALL), file="mine.py:other")
    workload.of_kernel(mine).at({"M": 128})
    assert asked == [("mine.py:other", {"M": 128})]
    small = workload.of_kernel(kernel("gemm", **SMALL)).at({"M": 128})
    assert small.name == "gemm" and small.problem["M"] == 128 and len(asked) == 1
