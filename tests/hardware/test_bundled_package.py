"""Does a bundle run where the kernel's package is not, or is another?"""

import importlib
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

from swizzle_sim.capture.user_kernel import load
from swizzle_sim.hardware.bundle import Finalist, make_bundle
from swizzle_sim.hardware.node.manifest import PACKAGE, digest
from tests.capture.same_trace import needs_triton
from xcd_model import gpu

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
def test_what_the_kernel_needs_of_its_package_is_in_the_bundle_and_runs(bundle, confirm):
    inside = {str(path.relative_to(bundle / "package")) for path in bundle.joinpath("package").rglob("*.py")}
    assert inside == {name for name in FILES if name.startswith("mine/")}
    assert (bundle / "package/mine/ops/copying.py").read_text().splitlines()[-2] == "WIDE = 2"
    assert "nobody_calls_it" not in (bundle / "package/mine/common/places.py").read_text()
    assert "not_there" not in (bundle / "package/mine/common/__init__.py").read_text()
    assert (bundle / "package/mine/__init__.py").read_text() == ""
    for name in ("original.py", "candidate_1.py"):
        text = (bundle / name).read_text()
        assert "# a comment of the kernel's" in text and "def launch" not in text and "UNUSED" not in text
        assert "limit: tl.constexpr" in text and text.count("LIMIT = LIMIT * 2") == 3
        assert text.count("not_there") == text.count("try:\n    import not_there\nexcept ImportError:") == 1
        assert text.count("try:\n    from ._compiled import ops\nexcept ImportError:") == 1
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
    assert (tmp_path / "bundle" / "package" / "shared" / "places.py").is_file()
    done = confirm(tmp_path / "bundle", "--no-time")
    assert done.code == 0, done.err


@needs_triton
def test_a_changed_file_of_the_package_is_refused(bundle, confirm):
    place = bundle / "package/mine/common/places.py"
    place.write_text(place.read_text().replace("pid * by", "0 * by"))
    done = confirm(bundle, "--no-time")
    assert done.code != 0 and "places.py was changed after the bundle was made" in done.err + done.out


@needs_triton
def test_a_suite_kernels_bundle_needs_no_package(made):
    manifest = json.loads((made / "manifest.json").read_text())
    assert manifest["package"] == "" and not (made / "package").exists()


def test_bundles_of_two_parts_of_one_package_run_in_one_process(tmp_path, monkeypatch):
    """From a folder that is named from here on: modules know theirs from the root of the disk on."""
    monkeypatch.setitem(sys.modules, "torch", ModuleType("torch"))  # of which nothing is used here
    launches = importlib.import_module("swizzle_sim.hardware.node.launches")
    monkeypatch.delitem(sys.modules, launches.__name__)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.chdir(tmp_path)
    for part in ("attention", "gemm"):
        kernel, beside = "from .beside import NAME\n\n\ndef name():\n    return NAME\n", f"NAME = {part!r}\n"
        files = {"kernel.py": kernel, f"{PACKAGE}/bundled_in_parts/ops/{part}/beside.py": beside}
        files |= {f"{PACKAGE}/bundled_in_parts/{name}__init__.py": "" for name in ("", "ops/")}
        write(Path(part), files)
        digests = {file: digest((Path(part) / file).read_bytes()) for file in files}
        manifest = {"package": f"bundled_in_parts.ops.{part}", "files": digests}
        assert launches.load_function(Path(part), manifest, "kernel.py", "name")() == part
