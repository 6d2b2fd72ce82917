"""Does init-kernel take its answers from the launch in the same file, and are hidden tile axes found?"""

import ast
import textwrap
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from swizzle_sim.capture.declare import KernelDeclaration
from swizzle_sim.capture.init_kernel import write_declaration
from swizzle_sim.capture.own_remap import own_remap
from swizzle_sim.capture.worker import describe
from swizzle_sim.language import Grid
from swizzle_sim.triton_source import parse_source
from swizzle_sim.triton_source.parameters import facts_of
from swizzle_sim.triton_source.tile_axes import TileAxes
from swizzle_sim.workload.launch import Array, Launch
from tests.capture.same_trace import needs_triton
from xcd_model.errors import CaptureError

MATMUL = """
import torch
import triton
import triton.language as tl


@triton.jit
def matmul(a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
           BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    pid = tl.program_id(0)
    num_n = tl.cdiv(N, BLOCK_N)
    pid_m = pid // num_n
    pid_n = pid % num_n
    rows = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    a = tl.load(a_ptr + rows * stride_am + stride_ak)
    b = tl.load(b_ptr + pid_n * stride_bn + stride_bk)
    tl.store(c_ptr + rows * stride_cm + stride_cn, a + b)


def run(a, b):
    assert a.shape[1] == b.shape[0]
    M, K = a.shape
    _, N = b.shape
    c = torch.empty((M, N), device=a.device, dtype=torch.float16)
    BLOCK_M, BLOCK_N = 128, 64
    grid = lambda META: (triton.cdiv(M, META["BLOCK_M"]) * triton.cdiv(N, META["BLOCK_N"]),)
    matmul[grid](
        a, b, c, M, N, K,
        a.stride(0), a.stride(1), b.stride(0), b.stride(1), c.stride(0), c.stride(1),
        BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, BLOCK_K=32, num_warps=8, num_stages=3,
    )
    return c
"""
ROWS = """
import torch
import triton
import triton.language as tl


@triton.jit
def norm(Y, y_stride, X, x_stride, n_cols, eps, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK_SIZE)
    tl.store(Y + row * y_stride + at, tl.load(X + row * x_stride + at, mask=at < n_cols) * eps, mask=at < n_cols)


def forward(X, eps):
    shape = X.shape
    dim = shape[-1]
    X = X.view(-1, dim)
    n_rows, n_cols = X.shape
    BLOCK_SIZE, num_warps = settings(n_cols)
    Y = torch.empty_like(X)
    norm[(n_rows,)](Y, Y.stride(0), X, X.stride(0), n_cols, eps, BLOCK_SIZE=triton.next_power_of_2(n_cols))
"""


def drafted(tmp_path, text, function, name="my-ops.py"):
    (tmp_path / name).write_text(text)
    path, to_complete = write_declaration(f"{tmp_path / name}:{function}", None)
    ast.parse(path.read_text())
    return path.read_text(), to_complete


def test_the_caller_of_the_launching_function_is_read_too(tmp_path):
    head, _, body = MATMUL.partition("def run(a, b):\n")
    shapes, _, launch = body.partition("    BLOCK_M, BLOCK_N")
    text = f"{head}def run(a, b):\n{shapes}    return launch(a, b, c, M, N, K)\n\n\n"
    text += f"def launch(x, y, z, M, N, K):\n    BLOCK_M, BLOCK_N{launch}"
    for old, new in (("a, b, c, M", "x, y, z, M"), ("a.str", "x.str"), ("b.str", "y.str"), ("c.str", "z.str")):
        text = text.replace(old, new) if old != "a, b, c, M" else text.replace(f"        {old}", f"        {new}")
    found, to_complete = drafted(tmp_path, text, "matmul")
    assert to_complete == []
    assert '"c_ptr": Array(shape=(s.M, s.N), dtype="fp16", role="out"),' in found
    assert '"stride_bk": s.N,' in found


KERNEL = """
import triton
import triton.language as tl

@triton.jit
def split(pid, n):
    return pid // n, pid % n

@triton.jit
def number():
    return tl.program_id(0).to(tl.int64)

@triton.jit
def kernel(x, M, N, GROUP: tl.constexpr, BLOCK: tl.constexpr):
"""


@pytest.mark.parametrize(
    ("body", "tiles"),
    [
        ("pid = tl.program_id(0)\nm = pid // tl.cdiv(N, BLOCK)\nn = pid % tl.cdiv(N, BLOCK)", (4, 6)),
        ("pid = tl.program_id(0)\nn = pid // tl.cdiv(M, BLOCK)\nm = pid % tl.cdiv(M, BLOCK)", (6, 4)),
        ("pid = tl.program_id(0)\nm, n = split(pid, tl.cdiv(N, BLOCK))", (4, 6)),
        ("width = GROUP * tl.cdiv(N, BLOCK)\nrows = tl.cdiv(M, BLOCK)\ngroup = number() // width", (4, 6)),
        ("num_pid_m = tl.cdiv(M, BLOCK)\nnum_pid_n = tl.cdiv(N, BLOCK)\npid = tl.program_id(0)", (4, 6)),
        ("pid = tl.program_id(0)\nz = pid % GROUP\nt = pid // GROUP\nm = t // tl.cdiv(N, BLOCK)", (12, 2)),
        ("pid = tl.program_id(0)\nb = pid // (M * 2)", None),
        ("pid = tl.program_id(0)\nwhole = x + pid * N", None),
        ("n = tl.program_id(1)\nm = tl.program_id(0) // 2", None),
    ],
)
def test_tile_axes_are_what_the_id_is_divided_by(body, tiles):
    source = parse_source((KERNEL + textwrap.indent(body, "    ") + "\n").encode(), "k.py")
    values = {"M": 64, "N": 96, "GROUP": 2, "BLOCK": 16}
    assert TileAxes(source, "kernel").tiles(values, [24]) == tiles


@needs_triton
@pytest.mark.parametrize("grid", ["s.M // 128 * (s.N // 64)", "-(-s.M // 128) * -(-s.N // 64)"], ids=["down", "up"])
def test_other_grids_of_a_kernel_with_tile_axes_have_them_too(tmp_path, grid):
    """A grid that rounds down fits no tiles at ragged sizes; orders by rows and columns are checked where it does."""
    (tmp_path / "mine.py").write_text(MATMUL)
    arrays = {"a_ptr": "", "b_ptr": "", "c_ptr": ', role="out"'}
    lines = [f'"{name}": Array(shape=(s.M, s.N), dtype="fp16"{role}),' for name, role in arrays.items()]
    ones = ["K", "stride_am", "stride_ak", "stride_bk", "stride_bn", "stride_cm", "stride_cn"]
    (tmp_path / "my_kernel.py").write_text(
        "from swizzle_sim.capture import Array, Kernel\n\n"
        'kernel = Kernel("mine.py:matmul", sizes={"M": 1024, "N": 1024}, '
        'constexprs={"BLOCK_M": 128, "BLOCK_N": 64, "BLOCK_K": 32},\n'
        f"    grid=lambda s: ({grid},),\n"
        f"    arguments=lambda s: {{{' '.join(lines)} **dict.fromkeys({ones}, 1), 'M': s.M, 'N': s.N}})\n"
    )
    found = describe({"path": str(tmp_path / "my_kernel.py"), "name": None, "sizes": {}})
    assert found["facts"]["tiles"] == [8, 16] and len(found["grids"]) > 5
    assert all(one["tiles"] for one in found["grids"])
    assert (grid[0] == "-") == any(one["tiles"] == [1, 1] for one in found["grids"])


def test_what_a_helper_reads_and_writes_its_caller_points_at():
    text = """
import triton
import triton.language as tl

@triton.jit
def inner(acc, rows, table, n, out, BLOCK: tl.constexpr):
    at = tl.load(table + tl.arange(0, BLOCK))
    tl.store(out + at, acc)
    return acc + tl.load(rows + at, mask=at < n)

@triton.jit
def kernel(x, y, places, n, BLOCK: tl.constexpr):
    rows = x + tl.program_id(0) * n
    inner(0.0, rows, places, n, out=y, BLOCK=BLOCK)
"""
    facts = facts_of(parse_source(text.encode(), "k.py"), "kernel")
    kinds = {one.name: (one.kind, one.role, one.is_index) for one in facts.parameters if one.kind == "pointer"}
    assert kinds == {"x": ("pointer", "in", False), "y": ("pointer", "out", False), "places": ("pointer", "in", True)}
    assert [one.kind for one in facts.parameters if one.name == "n"] == ["size"]


# ---- Is a remap that a kernel holds already found, and is it put off by its constant?
HEAD = """
import triton
import triton.language as tl


@triton.jit
def f(x, M, N, GROUP_M: tl.constexpr, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    num_pid_m = tl.cdiv(M, BLOCK)
    num_pid_n = tl.cdiv(N, BLOCK)
"""
GROUPED = """
    width = GROUP_M * num_pid_n
    first = (pid // width) * GROUP_M
    size = min(num_pid_m - first, GROUP_M)
    pid_m = first + (pid % width) % size
    pid_n = (pid % width) // size
    tl.store(x + pid_m, pid_n)
"""
PLAIN = "    pid_m = pid // num_pid_n\n    pid_n = pid % num_pid_n\n    tl.store(x + pid_m, pid_n)\n"
COLUMNS = "    pid_n = pid // num_pid_m\n    pid_m = pid % num_pid_m\n    tl.store(x + pid_m, pid_n)\n"
TILED = Grid((24,), (4, 6))


@pytest.fixture
def found(tmp_path):
    def make(body, group, head=HEAD, grid=TILED):
        path = tmp_path / "k.py"
        path.write_text(head + body)
        launch = Launch(
            path=path,
            function="f",
            arguments={"x": Array(shape=(64,), dtype="int32", role="out"), "M": 64, "N": 96},
            constexprs={"GROUP_M": group, "BLOCK": 16},
            grid=(24,),
        )
        return own_remap(SimpleNamespace(file="k.py", claims=None, grid=grid, launch=launch), 8)

    return make


def test_a_group_is_found_and_put_off_by_its_constant(found):
    inside = found(GROUPED, 2)
    assert (inside.now, inside.constants) == ({"GROUP_M": 2}, {"GROUP_M": 1})
    assert inside.tiles[:4].tolist() == [0, 6, 1, 7]
    assert np.array_equal(inside.tiles[inside.without], np.arange(24))
    assert str(inside) == "the kernel's own remap (GROUP_M=2)"


HELPER = "\n\n@triton.jit\ndef number(axis):\n    return tl.program_id(axis).to(tl.int64)\n"


@pytest.mark.parametrize(
    ("body", "group", "constants", "tiles"),
    [
        (COLUMNS, 2, {}, [0, 6, 12, 18]),  # a remap without such a constant
        ("    pid = number(0)\n" + GROUPED.lstrip("\n") + HELPER, 2, {"GROUP_M": 1}, [0, 6, 1, 7]),
        (PLAIN, 2, None, None),  # a plain decode
        (GROUPED, 1, None, None),  # a group of one
        ("    pid_m = tl.load(x + pid)\n", 2, None, None),  # which cannot be read
    ],
)
def test_a_remap_is_found_where_there_is_one(found, body, group, constants, tiles):
    inside = found(body, group)
    assert (inside and inside.constants, inside and inside.tiles[:4].tolist()) == (constants, tiles)


def test_a_group_in_a_persistent_loop_behind_an_axis_and_under_other_names_is_found(found):
    expected, flat = found(GROUPED, 2).tiles, Grid((24,))
    looped = GROUPED.replace("    ", "        ").replace("pid //", "tile //").replace("pid %", "tile %")
    looped = "    for tile in tl.range(pid, num_pid_m * num_pid_n, tl.num_programs(0)):\n" + looped.lstrip("\n")
    named = GROUPED.replace("    pid_m =", "    block_m =").replace("    pid_n =", "    block_n =")
    offsets = "    rows = block_m * BLOCK + tl.arange(0, BLOCK)\n    cols = block_n * BLOCK + tl.arange(0, BLOCK)\n"
    at = "x + rows[:, None] * N + cols[None, :]"
    named = named.replace("    tl.store(x + pid_m, pid_n)", f"{offsets}    tl.store({at}, tl.load({at}))")
    for body in (looped, named):
        inside = found(body, 2, grid=flat)
        assert inside is not None, body
        assert inside.constants == {"GROUP_M": 1} and np.array_equal(inside.tiles, expected)
    behind = found(GROUPED, 2, HEAD.replace("pid = ", "z = tl.program_id(1)\n    pid = "), Grid((24, 3)))
    assert np.array_equal(behind.tiles, np.concatenate([expected + 24 * z for z in range(3)]))


SPLIT_K = """
import torch
import triton
import triton.language as tl


@triton.jit
def split_k_kernel(a, b, c, M, N, K, sam, sak, sbk, sbn, scm, scn, BM: tl.constexpr, BN: tl.constexpr,
                   SPLIT: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    part = tl.load(a + rows * sam + tl.program_id(1) * sak) + tl.load(b + rows * sbn)
    tl.store(c + rows * scm, part)


def split_k(a, b, split=4):
    if a.shape[1] != b.shape[0]:
        raise ValueError("sides")
    M, K = a.shape
    N = b.shape[1]
    c = torch.zeros(M, N, device=a.device, dtype=a.dtype)
    grid = (triton.cdiv(M, 128), split)
    split_k_kernel[grid](a, b, c, M, N, K, *a.stride(), *b.stride(), *c.stride(), 128, 64, split, num_warps=8)
    return c


if __name__ == "__main__":
    a, b = (torch.randn(4096, 4096, device="cuda").to(torch.bfloat16) for _ in range(2))
    split_k(a, b * 0.5)
"""
GATED = """
import torch
import triton
import triton.language as tl


@triton.jit
def gated(x_ptr, up_ptr, gate_ptr, y_ptr, M, N, scale, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.load(x_ptr + at) * tl.load(up_ptr + at) * tl.load(gate_ptr + at) * scale)


class Gated:
    def forward(self, x, up, gate):
        assert up.shape == gate.shape == x.shape and up.dtype == x.dtype
        M, N = x.shape
        y = torch.empty_like(x)
        gated[(triton.cdiv(M * N, 256),)](x, up, gate, y, M, N, N ** -0.5, BLOCK=256)
        return y


def test_gated():
    M, N = 1000, 3000
    x, up, gate = [torch.randn(M, N, dtype=torch.float16) for _ in range(3)]
    layer = Gated()
    layer.forward(x, up, gate)
"""


ANSWERS = {
    "matmul": (
        MATMUL,
        '    "my-ops.py:matmul",',
        '    sizes={"M": 1024, "K": 1024, "N": 1024},',
        '        "a_ptr": Array(shape=(s.M, s.K), dtype="fp16"),',
        '        "b_ptr": Array(shape=(s.K, s.N), dtype="fp16"),',
        '        "c_ptr": Array(shape=(s.M, s.N), dtype="fp16", role="out"),',
        '        "stride_am": s.K,',
        '        "stride_bn": 1,',
        '        "BLOCK_M": 128,',
        "    grid=lambda s: (triton.cdiv(s.M, s.BLOCK_M) * triton.cdiv(s.N, s.BLOCK_N),),",
        "    tiles=lambda s: (triton.cdiv(s.M, s.BLOCK_M), triton.cdiv(s.N, s.BLOCK_N)),",
        "    num_warps=8,",
        "    num_stages=3,",
    ),
    "norm": (
        ROWS,
        '"X": Array(shape=(s.n_rows, s.n_cols), dtype="fp16"),',
        '"Y": Array(shape=(s.n_rows, s.n_cols), dtype="fp16", role="out"),',
        '"BLOCK_SIZE": triton.next_power_of_2(s.n_cols),',
        "grid=lambda s: (s.n_rows,),",
        "without it no order by rows and columns is tried",
    ),
    "split_k": (  # a wrapper: its defaults, strides and sizes
        SPLIT_K,
        'sizes={"M": 4096, "K": 4096, "N": 4096},',
        '"a": Array(shape=(s.M, s.K), dtype="bf16"),',
        '"b": Array(shape=(s.K, s.N), dtype="bf16"),',
        '"sak": 1,',
        '"sbk": s.N,',
        '"SPLIT": 4,',
        "grid=lambda s: (triton.cdiv(s.M, 128), 4),",
    ),
    "gated": (  # shapes that are asserted equal, and the call of a test
        GATED,
        'sizes={"M": 1000, "N": 3000},',
        *(f'"{name}_ptr": Array(shape=(s.M, s.N), dtype="fp16"' for name in ("x", "up", "gate", "y")),
        '"scale": (s.N ** -0.5),',
    ),
}


@pytest.mark.parametrize("function", ANSWERS)
def test_a_launch_answers_sizes_strides_grid_and_options(tmp_path, function):
    source, *lines = ANSWERS[function]
    text, to_complete = drafted(tmp_path, source, function)
    assert to_complete == []
    for line in lines:
        assert line in text


STEPWISE = """
import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


def _copy(d_in, d_out, M, BM: tl.constexpr, OUT: tl.constexpr, EVEN: tl.constexpr):
    m = tl.program_id(0) * BM
    d_out.store([m, 0], d_in.load([m, 0]).to(OUT))


_copy = triton.jit(_copy)
_copy = triton.heuristics({"EVEN": lambda a: a["M"] % a["BM"] == 0})(_copy)
_copy = triton.autotune(configs=[triton.Config({"BM": 32}), triton.Config({"BM": 64})], key=["M"])(_copy)


def copy(x):
    M, N = x.shape
    out = torch.empty((M, N), device=x.device, dtype=torch.float16)
    into = TensorDescriptor(out, out.shape, out.stride(), [64, 128])
    _copy[(triton.cdiv(M, 64),)](TensorDescriptor.from_tensor(x, [64, 128]), into, M, OUT=tl.float16)
"""


@needs_triton
def test_wrappers_step_by_step_and_host_descriptors_are_read(tmp_path):
    (tmp_path / "copy.py").write_text(STEPWISE, encoding="utf-8")
    path, open_points = write_declaration(f"{tmp_path / 'copy.py'}:_copy", tmp_path / "declared.py")
    text = path.read_text(encoding="utf-8")
    assert '"d_in": Array(shape=(s.M, s.N), dtype="fp16", block=(64, 128))' in text
    assert '"d_out": Array(shape=(s.M, s.N), dtype="fp16", role="out", block=(64, 128))' in text
    assert '"OUT": "tl.float16"' in text and "EVEN" not in text and "the autotuner's" in text and not open_points
    kernel = KernelDeclaration(
        f"{tmp_path / 'copy.py'}:_copy",
        sizes={"M": 128},
        arguments=lambda s: {"d_in": Array(shape=(s.M, 128), dtype="fp16"), "M": s.M},
        constexprs={"OUT": "tl.float16"},
        grid=lambda s: (s.M // s.BM,),
        config={"BM": 16, "num_warps": 2},
    )
    launch = kernel.at()
    assert (launch.constexprs["BM"], launch.num_warps, launch.grid, launch.config) == (16, 2, (8,), "")
    kernel.config = {"num_warp": 2}
    with pytest.raises(CaptureError, match="num_warp is no parameter of the kernel and no option"):
        kernel.at()
    last = next(line for line in STEPWISE.splitlines() if "autotune" in line)  # as a file beside it sets it up
    tuners = "import triton\n\n\ndef tuned(key):\n    return " + last.removeprefix("_copy = ").removesuffix("(_copy)")
    (tmp_path / "tuners.py").write_text(tuners, encoding="utf-8")
    text = STEPWISE.replace("import torch", "from tuners import tuned", 1).replace(last, '_copy = tuned("M")(_copy)')
    (tmp_path / "elsewhere.py").write_text(text, encoding="utf-8")
    kernel = replace(kernel, function=f"{tmp_path / 'elsewhere.py'}:_copy", config=1)
    assert kernel.at().constexprs == {"OUT": "tl.float16", "BM": 64, "EVEN": True}


STARRED = """
import torch
import triton
import triton.language as tl


@triton.jit
def scan(x, bias, y, sxm, sxn, szm, szn, sym, syn, FLAG: tl.constexpr, extra, seed=None, share=0.0):
    rows = tl.program_id(0) + tl.arange(0, 16)
    bias = tl.load(bias + rows)
    tl.store(y + rows * sym + syn, tl.load(x + rows * sxm + sxn) + bias)


def run(x, bias, rest, z=None):
    M, N = x.shape
    y = torch.empty((M, N), dtype=torch.float16)
    torch.library.wrap_triton(scan)[(M,)](
        x, bias, y, *(x.stride(0), x.stride(1)), *((z.stride(0), 1) if z is not None else (0, 0)),
        y.stride(0), y.stride(1), True, *rest, 4,
    )
"""


def test_arguments_behind_a_star_have_their_own_places_and_those_with_defaults_stay_out(tmp_path):
    text, to_complete = drafted(tmp_path, STARRED, "run")
    for line in (
        '"sxm": s.N,',
        '"szm": ...,',
        '"szn": 1,  # CHECK: one of',
        '"sym": s.N,',
        '"syn": 1,',
        '"FLAG": True,',
    ):
        assert line in text
    declared = text.partition("make_inputs")[0]
    assert all(word not in declared for word in ("int32", "seed", "share")) and '"extra": s.extra,' in declared
    assert to_complete == ["bias", "szm"]


GUESSED = """
import torch
import triton
import triton.language as tl


@triton.jit
def bmm_kernel(a, b, c, M, N, K, n, scale, sab, sam, sak, sbb, sbk, sbn, BM: tl.constexpr, BN: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    tl.store(c + rows * n, tl.load(a + rows * sam + tl.program_id(1) * sab) + tl.load(b + rows * sbn) * scale)


def same_as_before(index):
    a = b = torch.empty(200, 400, dtype=torch.bfloat16)
    bmm_kernel[(4, 1)](a, b, a, 200, 256, 400, 1, 1.0, *a.stride(), 1, *b.stride(), 1, BM=16, BN=16)


def bmm(a, b, scale=None):
    batch, M, K = a.shape
    _, Kb, N = b.shape
    assert K == Kb
    assert N == M or M == 1
    c = a.new_empty((batch, M, N))
    whole = torch.empty((batch, M, N), dtype=a.dtype)
    N *= 2
    block = 64 if M > 64 else 32
    wide, deep = tuned(M)
    while deep < M:
        block *= 2
    grid = (triton.cdiv(M, 64), batch)
    bmm_kernel[grid](a, b, c, M, N, K, whole.numel(), scale, *a.stride(), *b.stride(),
                     BM=64 if M > 64 else 16, BN=block)
"""


def test_what_the_source_leaves_open_is_open_or_marked(tmp_path):
    """Strides over unnamed sides, dtypes of other tensors, names that change, one of several, a self-test's numbers."""
    text, to_complete = drafted(tmp_path, GUESSED.replace("_, Kb", "_, _").replace("    assert K == Kb\n", ""), "bmm")
    assert to_complete == ["b", "sbb", "BN"]
    for line in (
        'sizes={"batch": 4, "M": 1024, "K": 1024, "N": 1024},',
        '"c": Array(shape=(s.batch, s.M, s.N), dtype="fp16", role="out"),  # CHECK: dtype',
        '"N": (s.N * 2),',
        '"n": (s.batch * s.M * s.N),',
        '"scale": 1.0,  # CHECK: value',
        '"sbb": ...,  # CHECK',
        '"sbk": s.N,',
        '"BM": 64,  # CHECK: one of several in the source',
    ):
        assert line in text
    (tmp_path / "bmm_kernel.py").unlink()
    text, _ = drafted(tmp_path, GUESSED, "bmm_kernel")  # not the self-test's launch
    assert '"b": Array(shape=(..., s.K, s.N)' in text and '"sbb": s.K * s.N,' in text and "Kb" not in text
    two = (
        GUESSED.replace("    grid = (", "    other[(1,)](a)\n    grid = (")
        + "\n\n@triton.jit\ndef other(a):\n    pass\n"
    )
    with pytest.raises(CaptureError, match="bmm launches bmm_kernel, other: name one of them"):
        drafted(tmp_path, two, "bmm")
