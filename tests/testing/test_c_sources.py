"""Are remaps in C, C++, CUDA and HIP read as their authors mean them, and is what is not read named with its line?"""

from pathlib import Path

import numpy as np
import pytest

from swizzle_sim.language import Grid, Swizzle, family
from swizzle_sim.testing import assert_bijective
from swizzle_sim.testing.run import check_file
from tests.testing.test_constructs import order, results
from xcd_model.errors import LanguageError

LIBRARY = """
#pragma once
#include <hip/hip_runtime.h>
#define NUM_XCDS 8
#define CEIL_DIV(a, b) (((a) + (b) - 1) / (b))
#define UNUSED(x) do { (void)(x); } while (0)
#ifdef __gfx950__
constexpr int WIDE = 1;
#endif
namespace map {
constexpr int TILE = 64u;

// runs of `chunk` ids an XCD; what is left over keeps its id
__host__ __device__ __forceinline__ int chunked(int workgroup_id, int num_workgroups, int num_xcds, int chunk_size) {
    const int span = num_xcds * chunk_size;
    if (workgroup_id >= num_workgroups / span * span) return workgroup_id;
    int local = workgroup_id / num_xcds;
    return local / chunk_size * span + workgroup_id % num_xcds * chunk_size + local % chunk_size;
}

template <int W>
__device__ void grouped(int wgid, const int num_pid_m, const int num_pid_n, int& pid_m, int& pid_n)
{
    int in_group = W * num_pid_n, first = wgid / in_group * W;
    int rows = num_pid_m - first;
    if (rows > W) { rows = W; }
    pid_m = first + wgid % in_group % rows;
    pid_n = (wgid % in_group) / rows;
}
}

template <typename T, int W = 4>
__global__ __launch_bounds__(256, 2) void gemm(const T* __restrict__ a, T* c, int M, int N) {
    extern __shared__ float shm[];
    UNUSED(a);
    using map::TILE;
    const int num_pid_m = CEIL_DIV(M, map::TILE);
    const int num_pid_n = CEIL_DIV(N, map::TILE);
    int wgid = static_cast<int>(blockIdx.x);
    wgid = map::chunked(wgid, num_pid_m * num_pid_n, NUM_XCDS, W * W);
    int pid_m, pid_n;
    map::grouped<W>(wgid, num_pid_m, num_pid_n, pid_m, pid_n);
    shm[threadIdx.x] = a[pid_m];
    c[pid_n] = shm[0];
}

__global__ void elementwise(float* a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) a[i] = 0;
}
"""


@pytest.fixture
def written(written):
    return lambda text, name="k.hip": written(text, name, head="")


@pytest.mark.usefixtures("without_conditions")
@pytest.mark.parametrize("suffix", [".hip", ".cuh", ".c"])
def test_a_library_of_remaps_and_a_kernel(written, suffix):
    found = results(written(LIBRARY, f"k{suffix}"))
    assert {name: one.status for name, one in found.items()} == dict.fromkeys(("chunked", "grouped", "gemm"), "passed")
    assert found["grouped"].guessed == "W=1,2,4,8,16,32,64 wgid=pid"
    if suffix != ".hip":  # a text is read alike whatever its file is called
        return
    wrong = results(written(LIBRARY.replace("if (rows > W) { rows = W; }", "rows = W;"), f"k{suffix}"))
    assert {name: one.status for name, one in wrong.items()} == {
        "chunked": "passed", "grouped": "failed", "gemm": "failed",
    }  # fmt: skip


def test_a_kernel_is_what_its_parts_are(written):
    grid = Grid((63,), (7, 9))
    got = order(written(LIBRARY), "gemm", grid, M=7 * 64, N=9 * 64 - 5)
    want = Swizzle.parse(family("group_m(size=4)"))  # 63 workgroups are less than one span of 8 x 16: every id stays
    np.testing.assert_array_equal(got, want.permutation(grid, 8))


PLANE = """
template <int panel_width> __device__ dim3 rows() {
  auto ceil_div = [](int a, int b) { return (a + b - 1) / b; };
  const unsigned int block = blockIdx.x + blockIdx.y * gridDim.x, grid = gridDim.x * gridDim.y;
  const unsigned int panel = panel_width * gridDim.x;
  const unsigned int at = block % panel, index = block / panel;
  const unsigned int stride = index + 1 < ceil_div(grid, panel) ? panel_width : (grid - index * panel) / gridDim.x;
  const unsigned int column = (index & 1) ? gridDim.x - 1 - at / stride : at / stride;
  return {column, at % stride + index * panel_width, blockIdx.z};
}
"""


@pytest.mark.usefixtures("without_conditions")
def test_panels_of_a_launch_with_three_axes(written):
    found = results(written(PLANE))["rows"]
    assert (found.status, found.guessed) == ("passed", "panel_width=1,2,4,8,16,32,64"), found.message
    assert results(written(PLANE.replace("index + 1 <", "index <")))["rows"].status == "failed"


PERSISTENT = """
#define XCDS 8
struct Args { int tiles_m, tiles_n; const int* table; };
__global__ void persistent(const Args args) {
    int total = args.tiles_m * args.tiles_n;
    for (int t = blockIdx.x; t < total; t += gridDim.x) {
        int low = total / XCDS, x = t %% XCDS, rest = total %% XCDS;
        int pid = x * low + %s + t / XCDS;
        int pid_m = pid / args.tiles_n;
        int pid_n = pid %% args.tiles_n;
        work(args, pid_m, pid_n);
    }
}
"""


def test_a_persistent_loop_and_a_record_of_arguments(written):
    found = results(written(PERSISTENT % "(x < rest ? x : rest)"))["persistent"]
    assert found.status == "passed", found.message
    assert results(written(PERSISTENT % "0"))["persistent"].status == "failed"


EARLY = """
// swizzle: tiles=m_groups,gx launch="gx, (m_groups + 7) / 8 * 8" m_groups=1,3,8,28 gx=1,7
__global__ void k(float* c, int m_groups, int gx) {
    int id = blockIdx.y * gx + blockIdx.x;
    int per = (m_groups + 7) / 8;
    int pid_m = id % 8 * per + id / 8 / gx;
    int pid_n = id / 8 % gx;
    if (pid_m >= m_groups) return;
    c[pid_m] = pid_n;
}
"""


def test_surplus_workgroups_that_return(written):
    path = written(EARLY.replace("(m_groups + 7) / 8 * 8", "(m_groups + 7) // 8 * 8"))
    assert results(path)["k"].status == "passed", results(path)
    path = written(path.read_text().replace("int per = (m_groups + 7) / 8", "int per = m_groups / 8"))
    assert results(path)["k"].status == "failed"


def test_ids_as_libraries_spell_them(written):
    path = written(
        "__device__ int a(int n) { int x = hipBlockIdx_x; return n - 1 - x % n; }\n"
        "__device__ int b(int n) { return lib::block_id_x() % 8 * (n / 8) + lib::block_id_x() / 8; }\n"
        "__device__ int c() { return lib::block_id_x() % 2 + __builtin_amdgcn_workgroup_id_x() / 2 * 2; }\n"
        "__device__ int d() { int g = lib::grid_size_x() / lib::block_size_x(); return g - 1 - get_group_id(0); }\n"
    )
    for function, sizes in (("a", {"n": "num_pids"}), ("c", {}), ("d", {})):
        assert_bijective(f"{path}::{function}", **sizes)
    assert_bijective(f"{path}::b", n="num_pids", where="num_pids % 8 == 0")


@pytest.mark.parametrize(
    ("body", "said", "line"),
    [
        ("int pid = table[blockIdx.x];\n pid = pid % 8 * (n / 8) + pid / 8;", "'table[blockIdx.x]'", 2),
        ("int pid = blockIdx.x % 8 * (n / 8) + threadIdx.x;", "'threadIdx.x'", 2),
        ("int pid;\n decode(blockIdx.x, &pid);\n pid = blockIdx.x % 8 * (n / 8) + pid / 8;", "decode(", 3),
        ("int pid = blockIdx.x;\n switch (n) { case 1: pid = 0; }\n pid = pid % 8 * (n / 8) + pid / 8;", "switch", 3),
        ("int pid = blockIdx.x % 8 * (n / 8) + sizeof(int);", "sizeof", 2),
        ("int pid = blockIdx.x % 8 * 0.5f + blockIdx.x / 8;", "0.5f", 2),
        ("int pid = blockIdx.x % 8 * MACRO(n) + blockIdx.x / 8;", "MACRO", 2),
        ("goto end;\n int pid = blockIdx.x % 8 * + ;", "", 0),
    ],
    ids=str,
)  # fmt: skip
def test_what_is_not_read_is_named_with_its_line(written, body, said, line):
    path = written(f"__global__ void k(const int* table, float* c, int n) {{\n{body}\n c[pid] = 1;\n}}\n")
    found = results(path).get("k")
    if said:
        assert found is not None and found.status == "skipped"
        assert said in found.message
        assert f":{line}:" in found.message
        assert found.advice.startswith("// swizzle: ")
    else:
        assert found is None or found.status == "skipped"


def test_bad_files_are_one_clear_line(tmp_path, written):
    binary = tmp_path / "k.cu"
    binary.write_bytes(bytes(range(256)) * 40)
    for path, said in (
        (binary, "not UTF-8 text"),
        (written("int a;\0", "z.cpp"), "null byte"),
        (tmp_path / "no.cpp", "cannot be read"),
    ):
        (found,) = check_file(path)
        assert (found.status, said in found.message) == ("error", True)
        assert "\n" not in found.message
    assert results(written("int f( {{{ %%%\n#define\n#define A(\ntemplate <int>>\n}}}", "broken.cpp")) == {}
    with pytest.raises(LanguageError, match="no function missing"):
        assert_bijective(f"{written(LIBRARY)}::missing")


def test_statements_between_two_comments(written):
    path = written(
        "void host() {\n  launch([=](auto item) {\n    // swizzle: begin id=pid n=num_pids answer=tile\n"
        "    int x = id % 8;\n    int tile = x * (n / 8) + min(x, n % 8) + id / 8;\n    // swizzle: end\n  });\n}\n"
    )
    (found,) = results(path).values()
    assert found.status == "passed", found.message


TWO_AXES = """
#include "maps.h"
#include <hip/hip_runtime.h>
{sizes}
// swizzle: {line}
__global__ __launch_bounds__(256)
void gemm(const args g) {{
    int wgid = (blockIdx.y * gridDim.x) + blockIdx.x;
    const int NUM_WGS = gridDim.x * gridDim.y;
    wgid = chunked(wgid, NUM_WGS, NUM_XCDS, 16);
    const int num_pid_m = CEIL_DIV(M, 64), num_pid_n = CEIL_DIV(N, 64);
    int pid_m = wgid / num_pid_n;
    int pid_n = wgid % num_pid_n;
    work(g, pid_m, pid_n);
}}
"""


def test_headers_and_a_launch_with_two_axes_that_goes_by_one_number(written, tmp_path):
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "maps.h").write_text(LIBRARY)
    (tmp_path / "src").mkdir()
    sizes = "#define NUM_XCDS 8\n#define CEIL_DIV(a, b) (((a) + (b) - 1) / (b))"
    path = written(TWO_AXES.format(sizes=sizes, line="off").replace("// swizzle: off", ""), "src/k.cpp")
    found = results(path)["gemm"]
    assert found.status == "passed", found.message
    # where the sizes are constants of the file, the launch is the one that they make
    fixed = sizes + "\n#define M 8192\nconstexpr int N = M / 2;"
    path = written(TWO_AXES.format(sizes=fixed, line="off").replace("// swizzle: off", ""), "src/k.cpp")
    found = results(path)["gemm"]
    assert (found.status, found.guessed) == ("passed", "grids=128x64"), found.message
    path = written(TWO_AXES.format(sizes=fixed, line="grids=128x64"), "src/k.cpp")
    assert results(path)["gemm"].status == "passed"
    path = written(TWO_AXES.format(sizes=fixed, line="grids=128x65"), "src/k.cpp")
    assert results(path)["gemm"].status == "failed"


def test_a_launch_that_one_constant_suggests_refutes_nothing(written):
    text = (
        "#define N 4096\n__global__ void k(float* c) {{\n    const int num_tiles = N / 64;\n"
        "    int pid = blockIdx.x % 8 * ({rows} * num_tiles / 8) + blockIdx.x / 8;\n    int pid_m = pid / num_tiles;\n"
        "    int pid_n = pid % num_tiles;\n    c[pid_m * N + pid_n] = 1;\n}}\n"
    )
    square, other = (results(written(text.format(rows=rows)))["k"] for rows in (64, 32))
    assert (square.status, square.guessed) == ("passed", "grids=64x64")
    assert (other.status, other.rule) == ("skipped", "SW204"), other.message


CONDITIONAL = """
template <typename Traits>
__global__ __launch_bounds__(Traits::BLOCK) void gemm(args kargs) {
#ifdef __HIP_DEVICE_COMPILE__
#if defined(__gfx950__)
    using T = remove<Traits>;
    const int grid_dim_x = opus::grid_size_x() / opus::block_size_x();
    int wgid = opus::block_id_y() * grid_dim_x + opus::block_id_x();
    const int num_tiles_m = ceil_div(kargs.m, T::B_M);
    const int num_tiles_n = ceil_div_constexpr(kargs.n, T::B_N);
    int tile_m_id, tile_n_id;
    if constexpr (T::NUM_XCD > 1) {
        constexpr int X = T::NUM_XCD;
        int total = num_tiles_m * num_tiles_n, x = wgid % X;
        int to = x * (total / X) + {clip} + wgid / X;
        tile_m_id = to / num_tiles_n;
        tile_n_id = to % num_tiles_n;
    } else {
        tile_m_id = wgid / num_tiles_n;
        tile_n_id = wgid % num_tiles_n;
    }
    int wave = __builtin_amdgcn_readfirstlane(opus::thread_id_x() / get_warp_size());
    load(kargs, tile_m_id, tile_n_id, wave);
#else
    // another GPU's wheel has nothing here
#endif
#endif
}
"""


def test_conditions_of_the_preprocessor_and_fields_of_traits(written):
    found = results(written(CONDITIONAL.replace("{clip}", "min(x, total % X)")))["gemm"]
    assert (found.status, found.guessed) == ("passed", "NUM_XCD=num_xcds"), found.message
    assert results(written(CONDITIONAL.replace("{clip}", "0")))["gemm"].status == "failed"
    two = CONDITIONAL.replace("{clip}", "0").replace("    // another", "    tile_m_id = 1;\n    // another").replace(
        "#ifdef __HIP_DEVICE_COMPILE__", "#ifdef SOMETHING"
    )  # fmt: skip
    assert results(written(two)).get("gemm") is None or results(written(two))["gemm"].status == "skipped"


def test_headers_that_include_each_other_are_searched_once(tmp_path, monkeypatch):
    for k in range(6):
        others = "".join(f'#include "h{other}.h"\n' for other in range(6) if other != k)
        body = "inline int last(int pid, int num_pids) { return num_pids - 1 - pid; }\n" if k == 5 else ""
        (tmp_path / f"h{k}.h").write_text(f"#pragma once\n{others}{body}", encoding="utf-8")
    calls = "".join(f"  unknown_{k}(a);\n" for k in range(30))
    path = tmp_path / "k.hip"
    path.write_text(
        '#include "h0.h"\n__global__ void k(float* a, int num_pids) {\n'
        f"  int pid = last(blockIdx.x / 2 * 2 + blockIdx.x % 2, num_pids);\n{calls}  a[pid] = 0;\n}}\n",
        encoding="utf-8",
    )
    looked, is_file = [], Path.is_file
    monkeypatch.setattr(Path, "is_file", lambda self: looked.append(self) or is_file(self))
    assert results(path)["k"].verdict == "proved"
    assert len(looked) < 100


def test_a_method_that_says_whether_there_is_work_is_no_remap(written):
    text = """
struct Params {
    const float* bias; int n; long stride, row;
    __device__ bool advance_to_block() {
        int batch = blockIdx.z;
        bias += batch / n * stride + batch % n * row;
        return true;
    }
};
"""
    assert results(written(text)) == {}
