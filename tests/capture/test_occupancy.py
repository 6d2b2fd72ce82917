"""Are registers, LDS and workgroups per CU those of the compiler, and kept as long as the source stays?"""

import importlib.util
import json
import sys
from dataclasses import asdict, replace
from types import SimpleNamespace

import pytest

from swizzle_sim.base.disk_cache import DiskCache
from swizzle_sim.capture import occupancy
from swizzle_sim.capture.kernel_file import digest
from swizzle_sim.capture.occupancy import (
    ARCHS,
    NVIDIA,
    check_compiles,
    compile_launch,
    limits_of,
    resources_by_arch,
    stored_resources,
)
from swizzle_sim.capture.occupancy_code import (
    assembly_notes,
    before_loop,
    global_loads,
    in_flight,
    is_pipelined,
    loads_per_step,
    vector_cycles,
)
from swizzle_sim.nvidia import sass
from swizzle_sim.workload.kernels import kernel
from swizzle_sim.workload.launch import Array, Launch
from tests.capture.same_trace import needs_triton
from tests.in_process import runner
from xcd_model import Resources, gpu
from xcd_model.errors import CompileError


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder))
        yield folder / "swizzle-sim" / "compiled"


def gemm(block):
    return kernel("gemm", M=8192, N=8192, K=8192, BLOCK_M=block, BLOCK_N=block, BLOCK_K=64).launch


# Compiled here with Triton 3.9.0; workgroups per CU and gfx942's LDS as in the table the project started from.
@needs_triton
@pytest.mark.parametrize(
    ("block", "name", "vgprs", "used", "lds", "workgroups"),
    [
        (128, "mi300x", 128, 128, 32 * 1024, 2),
        (256, "mi300x", 248, 248, 64 * 1024, 1),
        (128, "mi355x", 104, 100, 68016, 2),
        (256, "mi355x", 256, 256, 136112, 1),
    ],
)
def test_gemm_occupies_what_the_compiler_says(block, name, vgprs, used, lds, workgroups):
    device = gpu(name)
    found = compile_launch(gemm(block), device.arch)
    assert (found.threads, found.lds_bytes, found.instructions_in_flight) == (512, lds, 4)
    limits = limits_of(found.resources, device)
    assert limits.workgroups == workgroups and limits.short == ("VGPRs", "LDS")
    assert found.options["num_warps"] == 8 and found.options["arch"] == device.arch
    if found.triton.startswith("3.9."):
        assert (found.vgprs, found.vgprs_used) == (vgprs, used)
    compiles = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(occupancy, "run_worker", lambda *args, **options: compiles.append(1))
        bigger = kernel("gemm", M=4096, N=4096, K=4096, BLOCK_M=block, BLOCK_N=block).launch
        assert compile_launch(bigger, device.arch) == found and not compiles  # sizes of one class, one compile
    assert found.vgprs - 8 < found.vgprs_used <= found.vgprs
    assert (found.vgpr_spills > 0) == (found.scratch_bytes > 0)
    assert found.resources.source == f"compiled for {device.arch} with Triton {found.triton}"


@needs_triton
def test_an_answer_is_kept_until_the_source_changes(tmp_path, monkeypatch, cache):
    compiled, inner = [], occupancy.run_worker

    def once(*args, **options):
        """Compile truly the first time; then give that answer again, with the files as they are by now."""
        (reply,) = (json.loads(compiled[0]) if compiled else inner(*args, **options))["replies"]
        compiled.append(json.dumps({"replies": [reply]}))
        return {"replies": [{**reply, "files": {where: digest(where) for where in reply["files"]}}]}

    monkeypatch.setattr(occupancy, "run_worker", once)
    helper, path = tmp_path / "beside_kernel.py", tmp_path / "k.py"
    helper.write_text("import triton\n\n@triton.jit\ndef twice(x):\n    return x * 2\n")
    text = (
        "import triton\nimport triton.language as tl\nfrom beside_kernel import twice\n\n\n"
        "@triton.heuristics({'EVEN': lambda args: args['N'] % args['B'] == 0})\n@triton.jit\n"
        "def k(x_ptr, N, s, B: tl.constexpr, EVEN: tl.constexpr = True):\n"
        "    at = tl.program_id(0) * B + tl.arange(0, B)\n"
        "    tl.store(x_ptr + at * s, twice(tl.load(x_ptr + at * s)))\n"
    )
    path.write_text(text)

    def launch(n, stride=1):
        x = Array(shape=(n,), dtype="bf16", role="inout")
        return Launch(
            path=path, function="k", arguments={"x_ptr": x, "N": n, "s": stride}, constexprs={"B": 256}, grid=(4,)
        )

    first = compile_launch(launch(1024), "gfx942").resources
    assert (first.threads, first.lds_bytes, first.instructions_in_flight) == (256, 0, 1)
    assert compile_launch(launch(1024), "gfx942").resources == first and len(compiled) == 1
    compile_launch(launch(1040), "gfx942")
    assert len(compiled) == 1  # of the same class
    compile_launch(launch(1024, stride=3), "gfx942")
    assert len(compiled) == 2  # a stride that is not 1 is other code
    helper.write_text(helper.read_text().replace("x * 2", "x * 3"))
    compile_launch(launch(1024), "gfx942")
    assert len(compiled) == 3
    for key in list(DiskCache("compiled", cache)._store):
        DiskCache("compiled", cache).put(key, {"function": "k"})
    compile_launch(launch(1024), "gfx942")
    assert len(compiled) == 4  # what is damaged is made anew
    monkeypatch.setattr(occupancy, "run_worker", inner)
    path.write_text(text.replace("twice(", "thrice("))
    with pytest.raises(CompileError, match=r"k\.py:10: k for gfx942: .*thrice"):
        compile_launch(launch(1024), "gfx942")
    path.write_text(text)
    bad = Launch(
        path=path, function="k", arguments={"x_ptr": Array(shape=(4,), dtype="fp32")}, constexprs={}, grid=(1,)
    )
    with pytest.raises(CompileError, match=r"k\.py: k\(.*\) is not given N, s, B"):
        compile_launch(bad, "gfx942")


def test_what_cannot_be_compiled_is_refused_before_triton_starts(tmp_path, monkeypatch):
    launch = Launch(path=tmp_path / "none.py", function="k", arguments={}, constexprs={}, grid=(1,))
    with pytest.raises(CompileError, match=r"none.py: no such file"):
        compile_launch(launch, "gfx942")
    with pytest.raises(CompileError, match=r"sm_90.*gfx942, gfx950, gfx1250, sm_90a"):
        compile_launch(launch, "sm_90")
    (tmp_path / "none.py").write_text("")
    monkeypatch.setattr(occupancy, "triton_version", lambda: (_ for _ in ()).throw(CompileError("not installed")))
    with pytest.raises(CompileError, match="not installed"):
        compile_launch(launch, "gfx942")


def test_what_limits_is_named():
    def short(threads, vgprs, lds):
        stated = Resources(threads=threads, vgprs=vgprs, lds_bytes=lds, instructions_in_flight=1, source="")
        found = limits_of(stated, gpu("mi300x"))
        return found.workgroups, found.short

    # By hand, for 4 SIMDs of 8 waves and 512 registers, 64 KiB of LDS.
    assert short(256, 128, 0) == (4, ("VGPRs",))
    assert short(256, 32, 40 * 1024) == (1, ("LDS",))
    assert short(256, 16, 0) == (8, ("VGPRs", "LDS", "waves and slots"))
    assert short(512, 128, 32 * 1024) == (2, ("VGPRs", "LDS"))


def test_notes_are_read_from_the_assembly():
    said = "    .sgpr_count:     42\n    .vgpr_count:     241\n    .private_segment_fixed_size: 268\n; VGPRBlocks: 30\n"
    notes = assembly_notes(f"{said}; Occupancy: 2\n")
    assert (notes["sgprs"], notes["vgprs_used"], notes["llvm_waves_per_simd"], notes["vgpr_spills"]) == (42, 241, 2, 0)
    assert (notes["vgprs"], notes["scratch_bytes"]) == (248, 268)  # 31 blocks of 8 registers
    with pytest.raises(ValueError, match="how many registers"):
        assembly_notes("text")


SASS = """
k:
.text.k:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/              @P0 LDG.E.64 R2, desc[UR4][R2.64] ;
.L_x_0:
        /*0020*/                   LDGSTS.E.BYPASS.128 [R12], desc[UR26][R94.64], P6 ;
        /*0030*/                   LDG.E.U16.CONSTANT R4, desc[UR4][R2.64] ;
.L_x_1:
        /*0040*/                   LDG.E R4, desc[UR4][R2.64] ;
        /*0050*/                   UTMALDG.2D [UR8], [UR4] ;
        /*0060*/              @!P6 BRA `(.L_x_1) ;
        /*0070*/               @P6 BRA `(.L_x_0) ;
        /*0080*/                   EXIT ;
.L_x_2:
        /*0090*/                   BRA `(.L_x_2);
"""
AMD = """
k:
\ts_load_dwordx4 s[0:3], s[4:5], 0x0
.LBB0_1:                                ; =>This Inner Loop Header
\tbuffer_load_dwordx4 v[2:5], v1, s[8:11], 0 offen lds
\tglobal_load_ushort v6, v[2:3], off
\tbuffer_load_ubyte v6, v1, s[8:11], 0 offen
\tglobal_load_dword v6, v[2:3], off
\tglobal_load_lds_dwordx4 v[2:3], off
\ts_cbranch_scc1 .LBB0_1
\ts_endpgm
"""


def test_loads_and_what_stands_before_the_loop_are_read_from_both_assemblies():
    assert sass.global_loads(SASS) == [(16, 1), (8, 1), (4, 1), (2, 1), (0, 1)]
    assert sass.before_loop(SASS) == (2, 0) and sass.code_bytes(SASS) == 160
    assert sass.before_loop(SASS.replace("@!P6 BRA", "EXIT").replace("@P6 BRA", "EXIT")) == (10, 0)
    bits = SASS.replace("LDG.E R4, desc[UR4][R2.64]", "IADD3 R4, R4, 0x1, RZ").replace("UTMALDG.2D [UR8], [UR4]", "NOP")
    apart = bits.replace("@P6 BRA `(.L_x_0)", "EXIT")  # a loop without loads, which turns once a level of a curve
    assert sass.before_loop(apart) == (10, 3)
    assert global_loads(AMD) == [(16, 2), (4, 1), (2, 1), (1, 1)]
    assert before_loop(AMD) == 1 and before_loop(AMD.replace("s_cbranch_scc1", "s_nop")) == 8
    nothing = {"step_instructions": 0, "after_products": False, "past_l1": False}
    assert sass.main_loop(SASS) == nothing
    words = " Function k:\n  REG:118 STACK:12 SHARED:1024 LOCAL:0\n"
    assert sass.usage(words) == {"vgprs": 118, "vgprs_used": 118, "scratch_bytes": 12, "vgpr_spills": 3}
    with pytest.raises(ValueError, match="no resource usage"):
        sass.usage("cuobjdump fatal")


def _loop(*words):
    """SASS of a loop of so many instructions between a prologue and an end."""
    names = ["S2R R0, SR_TID.X", "LDGSTS.E.BYPASS.128 [R1], desc[UR4][R2.64]", *words, "@!P5 BRA `(.L_x_0)", "EXIT"]
    lines = [f"        /*{16 * at:04x}*/                   {name} ;" for at, name in enumerate(names)]
    return "\n".join([*lines[:2], ".L_x_0:", *lines[2:]])


WAIT, COPY = "WARPGROUP.DEPBAR.LE gsb0, 0x{}", "LDGSTS.E.BYPASS.128 [R103], desc[UR14][R92.64], P5"
PRODUCT = "HGMMA.64x128x16.F32 R24, gdesc[UR8].tnspB, R24, gsb0"


@pytest.mark.parametrize(
    ("words", "after_products"),
    [
        ((PRODUCT, WAIT.format(0), PRODUCT, WAIT.format(0), "BAR.SYNC 0x0", COPY, "VIADD R1, R1, 0x1", COPY), True),
        ((PRODUCT, WAIT.format(0), PRODUCT, WAIT.format(1), "BAR.SYNC 0x0", COPY, "VIADD R1, R1, 0x1", COPY), False),
        ((COPY, "VIADD R1, R1, 0x1", COPY, PRODUCT, WAIT.format(1), PRODUCT, WAIT.format(0), "BAR.SYNC 0x0"), True),
        ((WAIT.format(0), COPY, "VIADD R1, R1, 0x1", COPY, PRODUCT, "BAR.SYNC 0x0", PRODUCT, WAIT.format(1)), True),
        ((COPY, WAIT.format(0), "VIADD R1, R1, 0x1", COPY, PRODUCT, "BAR.SYNC 0x0", PRODUCT, WAIT.format(1)), False),
    ],
)
def test_what_a_step_waits_for_is_read_round_its_loop(words, after_products):
    assert sass.main_loop(_loop(*words)) == {
        "step_instructions": 5, "after_products": after_products, "past_l1": True,
    }  # fmt: skip


def test_copies_that_an_l1_keeps_are_not_past_it():
    kept = (PRODUCT, COPY.replace(".BYPASS", ""), COPY)
    assert not sass.main_loop(_loop(*kept))["past_l1"]
    assert sass.main_loop(_loop(PRODUCT, "UTMALDG.2D [UR8], [UR4]", COPY))["past_l1"]


VECTOR = """
\tglobal_load_dwordx4 v[0:3], v[4:5], off
\tv_exp_f32 v0, v0
LBB0_1:
\tglobal_load_dword v1, v[4:5], off
\tv_add_f32 v2, v1, v2
\ts_add_u32 s0, s0, 1
\tv_rcp_f32 v2, v2
\ts_cbranch_scc1 LBB0_1
\tv_mul_f32 v2, v2, v2
"""


def test_vector_cycles_are_those_of_the_loop_that_loads_or_of_all_code():
    assert vector_cycles(VECTOR) == 4 + 16  # a reciprocal at a quarter of the rate
    assert vector_cycles(VECTOR.replace("s_cbranch_scc1", "s_nop")) == 4 + 4 + 16 + 16
    assert vector_cycles(VECTOR.replace("v_mul_f32", "v_mfma_f32_32x32x8_f16")) == 0


def test_loads_are_counted_in_the_main_loop():
    """The main one has an inner loop, which is none of its steps."""
    inner = "  scf.while : () -> () {\n  } do {\n    %4 = tt.load %q\n  }\n}\n"
    named = 'tt.func public @k(%a: !tt.ptr<f16> loc("tt.load {"(#loc))) {\n'
    nested = named + LOOP.removesuffix("}\n") + inner + "}\n"
    assert loads_per_step(nested, nested) == 2
    assert loads_per_step("tt.load\ntt.load\ntt.store", "") == 2 and loads_per_step("", "") == 0
    assert (in_flight(LOOP, LOOP, 3), in_flight(LOOP, PIPELINED, 3), in_flight("", "", 2)) == (2, 6, 1)


def test_show_falls_back_to_what_the_kernel_declares(monkeypatch, capsys, tmp_path):
    def missing():
        raise CompileError("Triton is not installed")

    monkeypatch.setattr(occupancy, "triton_version", missing)
    words = ("show", "gemm", "M=1024", "N=1024", "K=256", "BLOCK_M=128", "BLOCK_N=128")
    document = runner(monkeypatch, capsys, tmp_path)(*words, "--json").json
    assert document["compiled"] is None and document["resources"]["vgprs"] > 0
    assert document["workgroups_per_cu"] == 2 and document["limited_by"] == ["VGPRs", "LDS"]


@needs_triton
def test_a_backend_that_asks_torch_finds_a_stand_in():
    from swizzle_sim.capture.occupancy_worker import _torch_for

    if importlib.util.find_spec("torch") is not None:
        pytest.skip("torch is installed")
    with _torch_for("gfx942"):
        torch = importlib.import_module("torch")
        assert torch.cuda.is_available() and not isinstance(7, torch.Tensor)
    for arch in ("gfx942", "sm_90a"):
        with _torch_for(arch):
            assert ("torch" in sys.modules) == (arch == "gfx942")
    assert "torch" not in sys.modules


@needs_triton
def test_options_of_the_other_vendor_are_left_out(tmp_path):
    launch = replace(kernel("softmax", M=4, N=64).launch, options={"waves_per_eu": 2, "kpack": 2})
    assert compile_launch(launch, "sm_90a", use_cache=False).options.get("kpack") is None
    assert compile_launch(launch, "gfx942", use_cache=False).options["waves_per_eu"] == 2
    own = tmp_path / "own.py"
    own.write_text(
        "import triton\nimport triton.language as tl\n\n\n@triton.jit\ndef k(y, kpack: tl.constexpr):\n"
        "    tl.store(y + tl.arange(0, 128), kpack)\n"
    )
    arguments = {"y": Array(shape=(128,), dtype="fp32", role="out")}
    launch = Launch(path=own, function="k", arguments=arguments, constexprs={"kpack": 2}, grid=(1,))
    assert compile_launch(launch, "sm_90a", use_cache=False).vgprs  # its own argument, not the option


# ---- Which loop is the main one, and was it pipelined? Read from Triton's intermediate languages.
LOOP = """
#loc1 = loc("kernel.py":7:12)
#loc2 = loc("kernel.py":8:12)
#loc3 = loc("helper.py":3:4)
#loc12 = loc(callsite(#loc3 at #loc2))
#loc5 = loc("a"(#loc1))
#loc6 = loc("scale"(#loc12))
scf.for %k = %zero to %n step %one {
  %a = tt.load %x : tensor<64xf8> loc(#loc5)
  scf.if %some {
    %scale = tt.load %y : tensor<64xf32> loc(#loc6)
  }
}
"""
PIPELINED = """
#loc = loc("kernel.py":7:12)
#loc1 = loc("kernel.py":8:12)
#loc12 = loc("helper.py":3:4)
#loc13 = loc(callsite(#loc12 at #loc1))
#loc14 = loc("scale_3"(#loc13))
%a = ttg.async_copy_global_to_local %x : tensor<64xf8> loc(#loc)
scf.for %k = %zero to %n step %one {
  %scale_3 = tt.load %y : tensor<64xf32> loc(#loc14)
  %a_2 = ttg.async_copy_global_to_local %x : tensor<64xf8> loc(#loc)
}
"""
TABLES = """
scf.for %tile = %zero to %tiles step %one {
  %1 = tt.load %starts loc("kernel.py":2:4)
  %2 = tt.load %ends loc("kernel.py":3:4)
  %3 = tt.load %rows loc("kernel.py":4:4)
"""


TWICE = PIPELINED.replace("%a = ttg.async_copy_global_to_local %x : tensor<64xf8> loc(#loc)\n", "").replace(
    "%scale_3 = tt.load", "%other = tt.load %y : tensor<64xf32> loc(#loc14)\n  %scale_3 = tt.load"
)
IN_FRONT = '%b = tt.load %z loc("kernel.py":7:12)\n'
FETCHED = PIPELINED.replace("ttg.async_copy_global_to_local", "ttng.async_tma_copy_global_to_local")
BARE = "%9 = tt.load %x\nscf.for {\n%0 = tt.load %x\n%1 = tt.load %y\n}\n"


@pytest.mark.parametrize(
    ("first", "last", "loads", "pipelined"),
    [
        (LOOP, PIPELINED, 2, True),  # its loads stand in front of it too
        (LOOP, LOOP, 2, False),
        (LOOP, TWICE, 2, False),  # loaded more often in its place, so not sent ahead
        (IN_FRONT + LOOP, IN_FRONT * 2 + LOOP, 2, False),  # in front of the loop before pipelining too
        (TABLES + LOOP + "}\n", TABLES + PIPELINED + "}\n", 2, True),  # the main loop is one that was pipelined
        (TABLES + LOOP + "}\n", TABLES + LOOP + "}\n", 3, False),
        (LOOP.replace("tt.load %x", "tt.descriptor_load %x"), FETCHED, 2, True),  # by the accelerator
        (BARE, BARE, 2, False),
        (BARE, "%8 = tt.load %x\n" + BARE, 2, True),  # without locations more loads than before are its own
    ],
)
def test_loads_and_pipelining_of_the_main_loop_are_read(first, last, loads, pipelined):
    assert (loads_per_step(first, last), is_pipelined(first, last)) == (loads, pipelined)


TILES = """
import triton
import triton.language as tl


@triton.jit
def tiles(a, b, starts, ends, rows, c, K: tl.constexpr):
    at = tl.arange(0, 64)
    for tile in range(4):
        start, end = tl.load(starts + tile), tl.load(ends + tile)
        row = tl.load(rows + tile)
        total = tl.zeros((64, 64), tl.float32)
        for step in range(K // 64):
            depth = step * 64 + at
            left = tl.load(a + (row + at)[:, None] * K + depth[None, :])
            right = tl.load(b + depth[:, None] * 64 + at[None, :])
            total += tl.dot(left, right)
        tl.store(c + (start + at)[:, None] * 64 + at[None, :], total, mask=at[:, None] < end)
"""


@needs_triton
@pytest.mark.parametrize("arch", ["sm_90a", "gfx942"])
def test_a_loop_over_tables_around_a_product_is_not_the_main_one(arch, tmp_path):
    path = tmp_path / "tiles.py"
    path.write_text(TILES, encoding="utf-8")
    arguments = {
        "a": Array(shape=(256, 512), dtype="fp16"),
        "b": Array(shape=(512, 64), dtype="fp16"),
        **{name: Array(shape=(4,), dtype="int32") for name in ("starts", "ends", "rows")},
        "c": Array(shape=(256, 64), dtype="fp32", role="out"),
    }
    launch = Launch(path=path, function="tiles", arguments=arguments, constexprs={"K": 512}, grid=(1,))
    found = compile_launch(launch, arch, use_cache=False)
    assert (found.loads_per_step, found.pipelined) == (2, True)


SECOND = """
import triton
import triton.language as tl


@triton.jit
def second(a, b, c, d, K: tl.constexpr):
    at = tl.arange(0, 64)
    total = tl.zeros((64, 64), tl.float32)
    for step in range(K // 64):
        depth = step * 64 + at
        left = tl.load(a + at[:, None] * K + depth[None, :])
        total += tl.dot(left, tl.load(b + depth[:, None] * 64 + at[None, :]))
    tl.store(c + at[:, None] * 64 + at[None, :], total)
    sums = tl.zeros((64,), tl.float32)
    for step in tl.range(K // 64, num_stages=1):
        for part in tl.static_range(PARTS):
            sums += tl.load(d + part * K + step * 64 + at)
    tl.store(c + at, sums)
"""


@needs_triton
def test_a_pipelined_loops_code_is_timed_and_not_a_larger_one_behind_it(tmp_path):
    found = []
    for parts in (1, 6):
        path = tmp_path / f"second_{parts}.py"
        path.write_text(SECOND.replace("PARTS", str(parts)), encoding="utf-8")
        arguments = {
            "a": Array(shape=(64, 8192), dtype="fp16"),
            "b": Array(shape=(8192, 64), dtype="fp16"),
            "c": Array(shape=(64, 64), dtype="fp32", role="out"),
            "d": Array(shape=(6, 8192), dtype="fp32"),
        }
        launch = Launch(path=path, function="second", arguments=arguments, constexprs={"K": 8192}, grid=(1,))
        found.append(compile_launch(launch, "sm_90a", use_cache=False))
    assert [(one.loads_per_step, one.pipelined) for one in found] == [(2, True)] * 2
    assert found[0].step_cycles > 100 and found[1].step_cycles == pytest.approx(found[0].step_cycles, rel=0.05)


# ---- Is a kernel that AMD's compiler refuses captured for the GPUs that take it, and refused at once for the others?
FOUND = Resources(threads=256, vgprs=64, lds_bytes=0, instructions_in_flight=2, source="made up")
LAUNCH = {
    **{"path": "none.py", "function": "kernel", "arguments": {}, "constexprs": {}, "grid": [1]},
    **{"num_warps": 8, "num_stages": 2},
}


@pytest.fixture
def compiling(monkeypatch):
    """Architectures that a compile succeeds for, and those that were asked for."""
    able, asked = set(), []

    def compile_for(launch, archs):
        asked.extend(archs)
        return [SimpleNamespace(resources=FOUND) if arch in able else CompileError(f"not {arch}") for arch in archs]

    monkeypatch.setattr("swizzle_sim.capture.occupancy.compile_for", compile_for)
    return able, asked


@pytest.mark.parametrize(
    ("able", "arch", "says"),
    [
        ((), None, "not gfx942"),
        (("sm_90a",), None, ""),
        (("gfx950",), None, ""),
        (("gfx950",), "gfx942", ""),  # a tile may fit one and not the other: its score says so
        (("sm_90a",), "gfx942", "not gfx942"),
        (("sm_90a",), "sm_90a", ""),
        (("gfx942", "gfx950"), "sm_90a", "not sm_90a"),
    ],
)
def test_what_compiles_for_nobody_who_asks_is_refused_before_its_capture(compiling, able, arch, says):
    compiling[0].update(able)
    if not says:
        check_compiles(LAUNCH, arch)
        return
    with pytest.raises(CompileError, match=says):
        check_compiles(LAUNCH, arch)


def test_a_configuration_has_to_fit_a_cu_where_an_autotuner_would_find_out(monkeypatch):
    def compile_for(launch, archs):
        return [SimpleNamespace(resources=replace(FOUND, lds_bytes=launch)) for _ in archs]

    monkeypatch.setattr("swizzle_sim.capture.occupancy.compile_for", compile_for)
    check_compiles(64 << 10, "gfx942", fits=True)
    check_compiles(96 << 10, "gfx942")
    with pytest.raises(CompileError, match="no workgroup fits a CU of mi300x: short of LDS"):
        check_compiles(96 << 10, "gfx942", fits=True)
    check_compiles(96 << 10, "gfx950", fits=True)  # which has 160 KiB


def test_another_vendors_compiler_is_asked_only_by_nobody_and_may_compile_for_nothing(compiling):
    compiling[0].update(ARCHS)
    check_compiles(LAUNCH, ARCHS[0])
    assert not set(compiling[1]) & set(NVIDIA)
    manifest = {"facts": {"name": "kernel"}, "launch": LAUNCH, "resources": {"gfx942": {"error": "not gfx942"}}}
    with pytest.raises(CompileError, match="kernel does not compile for sm_90a: not sm_90a"):
        stored_resources(manifest, "sm_90a")


@pytest.mark.parametrize("able", [("gfx942",), ("gfx950",), ("sm_90a",)])
def test_a_gpu_of_another_vendor_takes_what_amds_compiler_says_or_its_own(compiling, able):
    compiling[0].update(able)
    launch = Launch.from_dict(LAUNCH)
    manifest = {"facts": {"name": "kernel"}, "launch": LAUNCH, "resources": resources_by_arch(launch)}
    assert asdict(stored_resources(manifest, "sm_90a")) == asdict(FOUND)
    for arch in ARCHS:
        if arch not in able:
            with pytest.raises(CompileError, match=f"kernel does not compile for {arch}: not {arch}"):
                stored_resources(manifest, arch)
