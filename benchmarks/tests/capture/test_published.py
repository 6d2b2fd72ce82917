"""Does a kernel load from its package's untouched file, with no torch and no GPU, and launch as there?

Each construct that keeps published kernels from loading stands here in a small package of its own. The packages
themselves are tried with ``pytest -m packages`` (see `swizzle_benchmarks.evidence.kernels_tried`).
"""

import sys
import textwrap

import numpy as np
import pytest

from swizzle_sim.capture.capture import capture_all
from swizzle_sim.capture.process import shared_worker
from swizzle_sim.capture.workload import workload
from swizzle_sim.language import Swizzle, family
from swizzle_sim.language.grid import Grid
from swizzle_sim.rewrite import rewrite_kernel
from tests.capture.same_trace import assert_equal_traces, needs_triton
from tests.capture.uncompiled import uncompiled  # noqa: F401  (a fixture)
from xcd_model.errors import CaptureError

pytestmark = needs_triton

FILES = {
    "pack/__init__.py": "raise RuntimeError('the package itself is never run')\n",
    "pack/utils/__init__.py": "",
    "pack/utils/ids.py": """
        import triton
        import triton.language as tl

        @triton.jit
        def spread(pid, n):
            return tl.minimum(pid, n - 1)

        @triton.jit
        def own_id():
            return tl.program_id(0)
    """,
    "pack/utils/gpu.py": """
        import torch
        import triton

        def is_hip():
            return triton.runtime.driver.active.get_current_target().backend == "hip"

        IS_AMD = torch.version.hip is not None and torch.cuda.is_available()
    """,
    "pack/03-not-a-name.py": """
        import functools

        import torch
        import nobody_has_this
        import triton
        import triton.language as tl
        from nobody_has_this import tuned_by_us

        from .utils.gpu import IS_AMD, is_hip
        from .utils.ids import own_id, spread

        DEVICE = torch.device(f"cuda:{torch.cuda.current_device()}")
        lib = torch.library.Library("ours", "DEF")
        ONE: tl.constexpr = tl.constexpr(1)

        try:
            import nor_this
            HAS = True
        except ImportError:
            HAS = False

        def configs():
            if is_hip() and IS_AMD and not HAS:
                options = {"waves_per_eu": 2, "matrix_instr_nonkdim": 16}
                return [triton.Config({"BLOCK": 128, **options}, num_warps=2, num_stages=1)]
            return [triton.Config({"BLOCK": 1024}, num_warps=8)]

        @torch.library.custom_op("ours::op", mutates_args=())
        def host(x: torch.Tensor) -> torch.Tensor:
            return x

        raise RuntimeError("host code of the file is never run")

        @tuned_by_us(configs=configs(), key=["n"])
        @triton.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})
        @triton.jit
        def kernel(x: torch.Tensor, y, n, scale, shift, BLOCK: tl.constexpr, EVEN: tl.constexpr):
            pid = spread(own_id(), tl.num_programs(0))
            tl.static_assert(torch.version.hip is not None)
            tl.assume(shift > 100)
            for i in range(2):
                at = (pid + i.to(tl.int64) * 0) * BLOCK + tl.arange(0, BLOCK)
                if EVEN:
                    row = tl.load(x + at)
                else:
                    row = tl.load(x + at, mask=at < n)
                row = row.to(tl.float32) * scale.to(tl.float32) + ONE
                tl.store(y + at, row, mask=at < n)
    """,
    "pointers.py": """
        import triton
        import triton.language as tl

        @triton.jit
        def grouped(places, out, n, BLOCK: tl.constexpr):
            pid = tl.program_id(0)
            base = tl.load(places + pid).to(tl.pointer_type(tl.float16))
            at = tl.arange(0, BLOCK)
            tl.store(out + pid * n + at, tl.load(base + at, mask=at < n), mask=at < n)

        @triton.jit
        def blocks(source, target, M, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
            row = tl.program_id(0) * BLOCK_M
            for column in tl.range(0, N, BLOCK_N):
                target.store([row, column], source.load([row, column]))
    """,
    "pack/tiles.py": """
        import triton
        import triton.language as tl
        from triton.language.core import _aggregate as aggregate

        @aggregate
        class Tile:
            row: tl.tensor
            column: tl.tensor
            side: tl.constexpr

            @triton.constexpr_function
            def __init__(self, row, column, side):
                self.row, self.column, self.side = row, column, tl.constexpr(side)

            @triton.jit
            def places(self, width):
                at = tl.arange(0, self.side)
                return (self.row * self.side + at[:, None]) * width + self.column * self.side + at[None, :]
    """,
    "pack/gemm.py": """
        import torch
        import triton
        import triton.language as tl

        from .tiles import Tile

        @triton.jit
        def tiled(x, y, n, BLOCK: tl.constexpr):
            for column in range(0, n // BLOCK):
                tile = Tile(tl.program_id(0), column, BLOCK)
                tl.store(y + tile.places(n), tl.load(x + tile.places(n)))
    """,
    "assigned.py": """
        import torch
        import triton
        import triton.language as tl

        def plain(x, y, n, BLOCK: tl.constexpr):
            at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
            tl.store(y + at, tl.load(x + at, mask=at < n), mask=at < n)

        @triton.jit
        def decorated(x, y, n, BLOCK: tl.constexpr):
            at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
            tl.store(y + at, tl.load(x + at, mask=at < n), mask=at < n)

        kernel = triton.jit(plain)
        fast = triton.autotune(
            configs=[triton.Config({"BLOCK": size}, num_warps=size // 64) for size in (64, 128)], key=["n"]
        )(decorated)
        both = triton.heuristics({"BLOCK": lambda args: 256})(triton.jit(plain, do_not_specialize=["n"]))
        limit = min(torch.cuda.device_count(), 4)
    """,
    "declared.py": """
        from swizzle_sim.capture import Array, Kernel

        def arguments(s):
            return {
                "x": Array(shape=(s.n,), dtype="fp8e4b8"), "y": Array(shape=(s.n,), dtype="fp32", role="out"),
                "n": s.n, "scale": 0.5, "shift": 3,
            }

        def grid(s):
            return (-(-s.n // s.BLOCK),)

        tuned = Kernel("pack/03-not-a-name.py:kernel", sizes={"n": 2048}, arguments=arguments, grid=grid)
        by_hand = Kernel(
            "pack/03-not-a-name.py:kernel", sizes={"n": 2048}, arguments=arguments, grid=grid,
            constexprs={"BLOCK": 64}, num_warps=1, options={"waves_per_eu": 3},
        )
        unknown = Kernel("pack/03-not-a-name.py:kernel", sizes={"n": 64}, arguments=arguments, grid=grid, config=7)
        in_parts = Kernel(
            "pack/03-not-a-name.py:kernel", sizes={"n": 2048}, arguments=arguments, grid=(16, 1), tiles=(2, 8),
            constexprs={"BLOCK": 128},
        )
        def assigned(name, **more):
            return Kernel(f"assigned.py:{name}", sizes={"n": 500}, grid=grid, **more, arguments=lambda s: {
                "x": Array(shape=(s.n,), dtype="fp16"), "y": Array(shape=(s.n,), dtype="fp16", role="out"), "n": s.n,
            })

        tiled = Kernel("pack/gemm.py:tiled", sizes={"n": 64}, constexprs={"BLOCK": 16}, grid=grid, arguments=lambda s: {
            "x": Array(shape=(s.n, s.n), dtype="fp16"), "n": s.n,
            "y": Array(shape=(s.n, s.n), dtype="fp16", role="out"),
        })
        jitted = assigned("kernel", constexprs={"BLOCK": 64})
        fast, both = assigned("fast", config=1), assigned("both")
        grouped = Kernel(
            "pointers.py:grouped",
            sizes={"n": 200},
            arguments=lambda s: {
                "places": Array(shape=(2,), dtype="int64", points_to=("second", "first")),
                "first": Array(shape=(s.n,), dtype="fp16"), "second": Array(shape=(s.n,), dtype="fp16"),
                "out": Array(shape=(2, s.n), dtype="fp16", role="out"), "n": s.n,
            },
            constexprs={"BLOCK": 256},
            grid=(2,),
        )
        blocks = Kernel(
            "pointers.py:blocks",
            sizes={"M": 128, "N": 192},
            arguments=lambda s: {
                "source": Array(shape=(s.M, s.N), dtype="bf16", block=(16, 64)),
                "target": Array(shape=(s.M, s.N), dtype="bf16", role="out", block=(16, 64)), "M": s.M, "N": s.N,
            },
            constexprs={"BLOCK_M": 16, "BLOCK_N": 64},
            grid=lambda s: (s.M // 16,),
        )
    """,
}


@pytest.fixture
def folder(tmp_path, uncompiled):  # noqa: F811
    """Folder of the files."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(textwrap.dedent(text))
    with shared_worker():  # which starts in seconds
        yield tmp_path


def launch_of(folder, name, **sizes):
    return workload(f"{folder / 'declared.py'}:{name}", sizes).launch


def test_a_launch_is_as_the_package_would_make_it(folder):
    launch = launch_of(folder, "tuned")
    assert launch.constexprs == {"BLOCK": 128, "EVEN": True}
    assert (launch.grid, launch.num_warps, launch.num_stages) == ((16,), 2, 1)
    assert launch.options == {"waves_per_eu": 2, "matrix_instr_nonkdim": 16}
    assert launch.config == "0 of 1"
    ragged = launch_of(folder, "tuned", n=2000)
    assert (ragged.constexprs["EVEN"], ragged.grid) == (False, (16,))
    mine = launch_of(folder, "by_hand")
    assert (mine.constexprs["BLOCK"], mine.num_warps, mine.options["waves_per_eu"], mine.grid) == (64, 1, 3, (32,))
    with pytest.raises(CaptureError, match="config = 7: the autotuner has 0 to 0"):
        launch_of(folder, "unknown")


def test_tiles_are_those_of_a_grid_whose_other_axes_have_one_workgroup(folder):
    found = workload(f"{folder / 'declared.py'}:in_parts", {})
    assert (found.launch.grid, found.grid) == ((16,), Grid((16,), (2, 8)))


def test_untouched_files_are_captured_as_they_are_interpreted(folder):
    launches = [launch_of(folder, name) for name in ("tuned", "grouped", "blocks", "tiled")]
    launches.append(launch_of(folder, "tuned", n=2000))
    followed, interpreted = capture_all(launches), capture_all(launches, full=True)
    for launch, ours, real in zip(launches, followed, interpreted, strict=True):
        assert_equal_traces(ours.trace, real.trace, launch.function)
    assert {tensor.name for tensor in followed[1].trace.tensors} == {"places", "out", "first", "second"}
    pack = {path.rpartition("/")[2] for path in followed[0].dependencies}
    assert {"03-not-a-name.py", "ids.py", "gpu.py"} <= pack
    assert "nobody_has_this" not in sys.modules


def test_kernels_made_by_assignment_are_those_inside(folder):
    launches = [launch_of(folder, name) for name in ("jitted", "fast", "both")]
    assert [(one.function, one.constexprs["BLOCK"], one.num_warps) for one in launches] == [
        ("kernel", 64, 4),
        ("decorated", 128, 2),
        ("both", 256, 4),
    ]
    followed, interpreted = capture_all(launches), capture_all(launches, full=True)
    for launch, ours, real in zip(launches, followed, interpreted, strict=True):
        assert_equal_traces(ours.trace, real.trace, launch.function)


def test_a_rewritten_file_takes_the_place_of_the_original(folder):
    """Under the original's name in its package: its imports, autotuner and heuristics hold, and no caller changes."""
    sizes = {"tiled": 160, "tuned": 2048, "jitted": 1000}
    works = [workload(f"{folder / 'declared.py'}:{name}", {"n": n}) for name, n in sizes.items()]
    swizzle = Swizzle.parse(family("contiguous"))
    found = [rewrite_kernel(one.launch, swizzle, grid=one.grid, num_xcds=8, sizes=one.problem) for one in works]
    before = capture_all([one.launch for one in works])
    for one in found:
        one.path.write_bytes(one.text)
    after = capture_all([launch_of(folder, name, n=n) for name, n in sizes.items()])
    for work, theirs, ours in zip(works, before, after, strict=True):
        order = swizzle.permutation(work.grid, 8, work.problem)
        assert (order != np.arange(order.size)).any()
        for program, tile in enumerate(order):
            np.testing.assert_array_equal(lines_at(ours.trace, program), lines_at(theirs.trace, tile))


def lines_at(trace, workgroup):
    mine = range(trace.start[workgroup], trace.start[workgroup + 1])
    ends = [trace.rel_start[trace.template[i] + k] for i in mine for k in (0, 1)]
    return np.concatenate([trace.base[i] + trace.rel[a:b] for i, a, b in zip(mine, ends[::2], ends[1::2], strict=True)])


def test_what_cannot_be_loaded_is_one_line_with_its_place_and_a_remedy(folder):
    (folder / "bad.py").write_text(
        "import torch\nimport triton\nimport triton.language as tl\n\nN = torch.cuda.mem_get_info()[0] // 2\n\n\n"
        "@triton.jit\ndef copy(x, y):\n    tl.store(y + tl.program_id(0), tl.load(x + N))\n"
    )
    (folder / "of_bad.py").write_text(
        "from swizzle_sim.capture import Array, Kernel\n"
        "one = Kernel('bad.py:copy', sizes={'n': 8}, grid=(8,), arguments=lambda s: {\n"
        "    'x': Array(shape=(8,), dtype='fp16'), 'y': Array(shape=(8,), dtype='fp16', role='out')})\n"
        "other = Kernel('bad.py:nothing', sizes={'n': 8}, grid=(8,), arguments={})\n"
    )
    with pytest.raises(CaptureError, match="there is copy"):
        workload(f"{folder / 'of_bad.py'}:one", {})
    text = (folder / "of_bad.py").read_text()
    (folder / "of_bad.py").write_text(text.rpartition("other =")[0])
    with pytest.raises(CaptureError) as error:
        workload(f"{folder / 'of_bad.py'}:one", {})
    assert str(error.value).startswith("bad.py:5: needs the value of torch.cuda.mem_get_info()")
    assert "constexprs=" in str(error.value)
    assert "\n" not in str(error.value)


CONDITIONAL = """
import torch
import triton
import triton.language as tl
from triton.backends import backends

if any(one.driver.is_active() for one in backends.values()):

    def configs():
        return [triton.Config({"BLOCK": 128}, num_warps=2)]

    def made(configs, given, **more):
        for one in configs:
            yield triton.Config({"BLOCK": 2 * one.kwargs["BLOCK"], "PARTS": 3}, num_warps=8)

    @triton.autotune(configs=configs(), key=["n"], prune_configs_by={"early_config_prune": made})
    @triton.jit
    def tuned(x, n, BLOCK: tl.constexpr, PARTS: tl.constexpr):
        tl.store(x + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), 1.0 * PARTS)

if torch.version.cuda:

    @triton.jit
    def elsewhere(x, n):
        tl.store(x + tl.program_id(0), 1.0)
"""
OF_CONDITIONAL = """
from swizzle_sim.capture import Array, Kernel

tuned, elsewhere = (
    Kernel(f"conditional.py:{{name}}", sizes={{"n": 1024}}, grid=(4,),
           arguments=lambda s: {{"x": Array(shape=(s.n,), dtype="fp32", role="out"), "n": s.n}})
    for name in ("tuned", "elsewhere")
)
""".replace("{{", "{").replace("}}", "}")


def test_a_kernel_under_a_condition_and_configurations_that_a_pruner_makes(folder):
    (folder / "conditional.py").write_text(CONDITIONAL)
    (folder / "declared.py").write_text(OF_CONDITIONAL)
    launch = launch_of(folder, "tuned")
    assert (launch.constexprs, launch.num_warps, launch.config) == ({"BLOCK": 256, "PARTS": 3}, 8, "0 of 1")
    (captured,) = capture_all([launch])
    assert captured.trace.n_workgroups == 4
    with pytest.raises(CaptureError) as error:
        launch_of(folder, "elsewhere")
    line = CONDITIONAL.splitlines().index("if torch.version.cuda:") + 1
    assert str(error.value) == (
        f"conditional.py:{line}: elsewhere is defined if torch.version.cuda, which does not hold here"
    )
