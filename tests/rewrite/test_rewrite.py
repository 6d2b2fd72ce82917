"""Is the rewritten text what a person would accept, and is what cannot be rewritten refused by its line?"""

import ast
import re
import textwrap
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swizzle_sim.language import Grid, Swizzle, emit_triton, family
from swizzle_sim.language.grid import result_digits
from swizzle_sim.rewrite import check_target, rewrite_kernel, write_rewritten
from swizzle_sim.rewrite.guard import guarded
from swizzle_sim.rewrite.tile_counts import tile_counts
from swizzle_sim.triton_source.definitions import Definitions
from swizzle_sim.workload.kernels import kernel
from swizzle_sim.workload.launch import Array, Launch
from tests.naive_int32 import evaluate
from tests.rewrite import workloads
from tests.unit import emit_cases
from xcd_model.errors import LanguageError, NotBijective, RewriteError, SwizzleSimError

HEAD = "import triton\nimport triton.language as tl\n\n\n@triton.jit\n"
PLAIN = HEAD + "def k(x_ptr, N, B: tl.constexpr):\n    pid = tl.program_id(0)\n    tl.store(x_ptr + pid, 1)\n"


def launch_of(path, text, grid=(24,), function="k", arguments=None, **constexprs):
    path.write_text(textwrap.dedent(text), encoding="utf-8")
    arguments = arguments or {"x_ptr": Array(shape=(64,), dtype="fp32", role="out"), "N": 24}
    return Launch(path=path, function=function, arguments=arguments, constexprs={"B": 1, **constexprs}, grid=grid)


def rewritten(launch, text="contiguous", num_xcds=8, grid=None, sizes=None, **options):
    swizzle = Swizzle.parse(text if "\n" in text or ("=" in text and "(" not in text.split("=")[0]) else family(text))
    return rewrite_kernel(
        launch, swizzle, grid=grid or Grid(launch.grid), num_xcds=num_xcds, sizes=sizes or {}, **options
    )


def changed(found):
    """Lines that the diff takes away and puts in, without the helper."""
    lines = found.diff().splitlines()[2:]
    inside, out = False, {"-": [], "+": []}
    for line in lines:
        inside = (inside or line.startswith("+# Workgroup id")) and line != "+    return pid"
        if line[0] in out and not inside and line.strip("+- ") and line != "+    return pid":
            out[line[0]].append(line[1:].strip())
    return out["-"], out["+"]


def test_the_suite_gemm_changes_by_two_lines():
    gemm = kernel("gemm", M=1024, N=512, K=64)
    found = rewritten(gemm.launch, "contiguous", grid=gemm.grid, sizes=gemm.problem, lattice=list(gemm.at_grids()))
    assert changed(found) == (
        ["pid = tl.program_id(0)"],
        ["NUM_XCDS: tl.constexpr = 8,", "pid = swizzle(tl.program_id(0), tl.num_programs(0), NUM_XCDS)"],
    )
    assert found.guarded.condition == "" and found.at == "program"


def test_tile_counts_come_from_the_source():
    gemm = kernel("gemm", M=1024, N=1024, K=64)
    found = rewritten(gemm.launch, "group_m(size=4)", grid=gemm.grid, sizes=gemm.problem, lattice=list(gemm.at_grids()))
    text = found.text.decode()
    assert "swizzle(tl.program_id(0), tl.num_programs(0) // tl.cdiv(N, BLOCK_N), tl.cdiv(N, BLOCK_N))" in text
    assert "NUM_XCDS" not in text  # a swizzle that does not ask needs no parameter


def test_comments_and_layout_stay():
    for name in ("add_2d", "copy_3d", "persistent"):
        workload = getattr(workloads, name)()
        found = rewritten(workload.launch, grid=workload.grid)
        before, after = found.original.decode(), found.text.decode()
        assert [c for c in re.findall(r"#[^\n]*", before) if c not in after] == []
        assert all(line in after for line in before.splitlines() if line.startswith("@"))
        kept = sum(line in after.splitlines() for line in before.splitlines())
        assert kept >= len(before.splitlines()) - 8
        ast.parse(after)


def test_a_parameter_follows_the_layout_of_those_before():
    text = rewritten(workloads.copy_3d().launch, grid=Grid((3, 3, 5))).text.decode()
    assert "    BX: tl.constexpr,  # items of a program along x\n    NUM_XCDS: tl.constexpr = 8,\n):" in text
    text = rewritten(workloads.persistent().launch, grid=Grid((8,))).text.decode()
    assert "    NUM_SMS: tl.constexpr,  # programs\n    NUM_XCDS: tl.constexpr = 8\n):" in text
    text = rewritten(workloads.add_2d().launch, grid=Grid((5, 6))).text.decode()
    assert "COLS: tl.constexpr, NUM_XCDS: tl.constexpr = 8):" in text


def test_helpers_are_handed_the_remapped_ids():
    text = rewritten(workloads.add_2d().launch, grid=Grid((5, 6))).text.decode()
    assert "def row_of(swizzled_pid_y, ROWS: tl.constexpr):" in text
    assert "rows = row_of(swizzled_pid_y, ROWS)" in text
    assert "place(swizzled_pid_x, swizzled_pid_y, width, ROWS, COLS)  # x is fastest" in text


def test_a_persistent_kernel_is_remapped_at_its_tile():
    workload = workloads.persistent()
    found = rewritten(workload.launch, "contiguous+group_m(size=3)", grid=workload.grid)
    assert found.at == "tile" and found.grid == Grid((20,), (5, 4))
    text = found.text.decode()
    assert "start_pid = tl.program_id(axis=0)\n" in text
    assert "swizzled_tile_id = swizzle(tile_id, tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N), num_tiles, NUM_XCDS)" in text
    assert "tile_id_c += NUM_SMS\n        swizzled_tile_id_c = swizzle(tile_id_c," in text
    program = rewritten(workload.launch, "contiguous", grid=workload.grid, at="program")
    assert program.at == "program" and "start_pid = swizzle(tl.program_id(axis=0)," in program.text.decode()


def test_a_claimed_tile_is_remapped_and_no_program():
    work = kernel("gemm_dynamic", M=1024, N=512, K=64)
    found = rewritten(work.launch, "contiguous", grid=work.grid, sizes=work.problem, lattice=list(work.at_grids()))
    assert changed(found) == (
        ["pid_m = tile // num_pid_n", "pid_n = tile % num_pid_n"],
        [
            "NUM_XCDS: tl.constexpr = 8,",
            "swizzled_tile = swizzle(tile, num_tiles, NUM_XCDS)",
            "pid_m = swizzled_tile // num_pid_n",
            "pid_n = swizzled_tile % num_pid_n",
        ],
    )
    assert found.at == "tile" and found.claimed and found.grid == work.grid


def test_whole_clusters_move_where_a_program_is_one():
    """With num_ctas Triton's program id is that of a cluster: the kernel is rewritten as without."""
    work, plain = kernel("gemm_cluster", M=1024, N=512, K=64), kernel("gemm", M=1024, N=512, K=64, BLOCK_N=128)
    assert work.launch.options == {"num_ctas": work.clusters.size} and work.launch.grid == plain.launch.grid
    one, other = (
        rewritten(of.launch, "group_m(size=2)", grid=of.grid, sizes=plain.problem, lattice=list(plain.at_grids()))
        for of in (work, plain)
    )
    assert one.text == other.text and one.at == "program" and changed(one)[0] == ["pid = tl.program_id(0)"]


def test_only_what_the_same_atomic_gives_before_and_in_the_loop_is_a_claim(tmp_path):
    body = (
        "    p = tl.program_id(0)\n    t = tl.atomic_add(c_ptr, 1)\n    while t < N:\n        tl.store(x_ptr + t, p)\n"
    )
    text = HEAD + "def k(x_ptr, c_ptr, N, B: tl.constexpr):\n" + body
    arguments = {"x_ptr": Array(shape=(24,), dtype="int32"), "c_ptr": Array(shape=(1,), dtype="int32"), "N": 24}
    same, other = "        t = tl.atomic_add(c_ptr, 1)\n", "        t = tl.atomic_add(c_ptr, 2)\n"
    for last, claimed in ((same, True), (other, False), (other + same, False)):
        found = rewritten(launch_of(tmp_path / "k.py", text + last, arguments=arguments, B=4))
        assert found.claimed == claimed and found.at == ("tile" if claimed else "program")


@pytest.mark.parametrize(
    ("head", "call"),
    [
        ("import triton\nimport triton.language as tl\n", "tl.program_id(axis=0)"),
        ("import triton\nfrom triton import language as tl\n", "tl.program_id(0)"),
        ("import triton as tr\nimport triton.language as L\n", "L.program_id(0)"),
        ("import triton\nimport triton.language\n", "triton.language.program_id(0)"),
        ("from triton import jit\nfrom triton.language import program_id, store, constexpr\n", "program_id(0)"),
    ],
)
def test_any_import_is_understood(tmp_path, head, call):
    jit = "jit" if "import jit" in head else "tr.jit" if " as tr" in head else "triton.jit"
    language = call.removesuffix("(axis=0)").removesuffix("(0)").removesuffix("program_id").removesuffix(".") or "tl"
    text = f"{head}\n\n@{jit}\ndef k(x_ptr, N, B):\n    pid = {call}\n"
    found = rewritten(launch_of(tmp_path / "k.py", text)).text.decode()
    assert f"pid = swizzle({call}, {language}.num_programs(0), NUM_XCDS)" in found
    assert f"NUM_XCDS: {language}.constexpr = 8" in found
    assert f"@{jit}\ndef swizzle(" in found
    ast.parse(found)


def test_what_is_missing_is_imported_after_the_other_imports(tmp_path):
    head = "from triton.language import program_id\nimport triton\n"
    text = f"{head}\n\n@triton.jit\ndef k(x_ptr, N, B):\n    a = program_id(0)\n"
    found = rewritten(launch_of(tmp_path / "k.py", text)).text.decode()
    assert found.startswith(f"{head}import triton.language as tl\n\n\n# Workgroup id to tile")


def test_names_in_use_are_left_alone(tmp_path):
    text = (
        HEAD + "def k(x_ptr, N, swizzle):\n    NUM_XCDS = tl.program_id(0)\n    tl.store(x_ptr + NUM_XCDS, swizzle)\n"
    )
    found = rewritten(launch_of(tmp_path / "k.py", text)).text.decode()
    assert "NUM_XCDS = swizzle_1(tl.program_id(0), tl.num_programs(0), NUM_XCDS_1)" in found
    assert "NUM_XCDS_1: tl.constexpr = 8" in found


def test_line_ends_tabs_and_encoding_are_the_files_own(tmp_path):
    text = PLAIN.replace("    ", "\t").replace("\n", "\r\n").replace("pid = ", "# é\r\n\tpid = ")
    launch = launch_of(tmp_path / "k.py", PLAIN)
    launch.path.write_bytes(text.encode())
    found = rewritten(launch).text
    assert b"\n" not in found.replace(b"\r\n", b"") and "# é".encode() in found
    assert b"\r\n\txcd = pid % NUM_XCDS\r\n" in found and b"    " not in found.replace(b"#     ", b"")


def test_one_line_blocks_semicolons_and_a_byte_order_mark_stay(tmp_path):
    text = HEAD + "def k(x_ptr, N, S: tl.constexpr):\n    for t in range(tl.program_id(0), N, S): a = t; f(a)  # é\n"
    launch = launch_of(tmp_path / "k.py", text)
    launch.path.write_bytes(b"\xef\xbb\xbf" + text.encode())
    found = rewritten(launch, "contiguous").text
    body = "N, S):\n        swizzled_t = swizzle(t, N, NUM_XCDS)\n        a = swizzled_t\n        f(a)  # é\n"
    assert found.startswith(b"\xef\xbb\xbfimport triton\n") and found.decode().endswith(body)
    launch = launch_of(tmp_path / "k.py", PLAIN.replace("(0)\n", "(0);  # é\n"))
    assert "NUM_XCDS);  # é\n" in rewritten(launch).text.decode()


# ---- guard


def test_outside_its_domain_the_order_stays_as_launched(tmp_path):
    naive = "pid = (pid % num_xcds) * (num_pids // num_xcds) + pid // num_xcds\n"
    found = rewritten(launch_of(tmp_path / "k.py", PLAIN), naive)
    assert found.guarded.condition == "num_pids % num_xcds == 0"
    assert "    if num_pids % NUM_XCDS == 0:\n        pid = (pid % NUM_XCDS)" in found.text.decode()
    for n in (24, 25, 7):
        order = found.guarded.swizzle.permutation(Grid((n,)), 8)
        assert sorted(order) == list(range(n))
        assert (order == np.arange(n)).all() == (n != 24)


def test_a_swizzle_of_one_grid_is_guarded_by_that_grid(tmp_path):
    found = rewritten(launch_of(tmp_path / "k.py", PLAIN), "pid = 23 - pid\n")
    assert found.guarded.condition == "num_pids == 24"
    assert (found.guarded.swizzle.permutation(Grid((30,)), 8) == np.arange(30)).all()


def tile_of(answer, form, grid, pid):
    """Linear id of a candidate's answer, what it leaves alone taken from the hardware's."""
    computed, kept = result_digits(form.results, grid)
    digits = dict(zip(form.results, answer, strict=True))
    digits |= {name: pid // digit.stride % digit.extent for name, digit in kept.items()}
    return sum(digits[name] * digit.stride for name, digit in (computed | kept).items())


@pytest.mark.parametrize(
    "grid", [Grid((64,), (8, 8)), Grid((99,), (9, 11)), Grid((64,)), Grid((5, 13)), Grid((4, 3, 5))], ids=str
)
def test_normal_form_answers_as_the_candidate_does(grid):
    known = {**emit_cases.FAMILY_TEXTS, **emit_cases.TEXTS}
    known |= {
        "count": "num_pid_n = 0\npid_m = num_pid_m - 1 - pid_m\n",
        "own": "own_pid_n = 3\npid_m = num_pid_m - 1 - pid_m\n",
    }
    tried = 0
    for name, text in known.items():
        swizzle = Swizzle.parse(text, name)
        try:
            safe = guarded(swizzle, grid, 8, emit_cases.SIZES)
        except (NotBijective, LanguageError):
            continue
        tried += 1
        wanted = [
            tile_of(evaluate(swizzle.form, known), swizzle.form, grid, pid)
            for pid, (known, _) in enumerate(emit_cases.values(swizzle.form, grid))
        ]
        assert safe.swizzle.permutation(grid, 8, emit_cases.SIZES).tolist() == wanted, name
        assert safe.form.results == (("pid",), ("pid_x", "pid_y"), ("pid_x", "pid_y", "pid_z"))[len(grid.launch) - 1]
        ast.parse(emit_triton(safe.form))
    assert tried >= 4


@settings(max_examples=30, deadline=None)
@given(
    st.integers(1, 40),
    st.integers(1, 12),
    st.sampled_from(["contiguous_naive", "chunked(chunk=3)+snake", "hilbert", "morton"]),
)
def test_a_guarded_swizzle_is_a_bijection_on_grids_nobody_tried(m, n, spec):
    safe = guarded(Swizzle.parse(family(spec)), Grid((64,), (8, 8)), 8, {})
    assert sorted(safe.swizzle.permutation(Grid((m * n,), (m, n)), 8)) == list(range(m * n))


# ---- hostile text
@pytest.mark.parametrize(
    "text",
    [
        "import os\npid = pid\n",
        "pid = __import__('os').system('x')\n",
        "pid = pid\n'''\n\nimport os\n'''\nopen = 3\n",
        "pid = pid  # \u2028import os\n",
        "swizzle = 1\ntriton = 2\npid = pid\n",
        "NUM_XCDS = 7\ntl = 1\npid = pid\n",
    ],
)
def test_only_the_languages_own_form_reaches_the_file(tmp_path, text):
    launch = launch_of(tmp_path / "k.py", PLAIN)
    try:
        swizzle = Swizzle.parse(text, name="x\nimport os", filename="x\nimport os")
        found = rewrite_kernel(launch, swizzle, grid=Grid((24,)), num_xcds=8, sizes={})
    except SwizzleSimError:
        return  # refused: nothing reaches anything
    tree = ast.parse(found.text)
    imports = [ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    assert imports == ["import triton", "import triton.language as tl"]
    assert [node.name for node in tree.body if isinstance(node, ast.FunctionDef)] == ["swizzle", "k"]
    assert b"os" not in found.text.replace(b"pos", b"")


def test_what_is_no_bijection_is_refused(tmp_path):
    with pytest.raises(NotBijective, match="not rewritten: pid 1 and pid 0 both compute tile 0"):
        rewritten(launch_of(tmp_path / "k.py", PLAIN), "pid = pid // 2\n")


# ---- refusals by line
@pytest.mark.parametrize(
    ("body", "line", "words"),
    [
        ("    f = tl.program_id\n    pid = f(0)\n", 7, "passed on"),
        ("    pid = tl.program_id(B)\n", 7, "literal axis"),
        ("    pid = tl.program_id(3)\n", 7, "literal axis"),
        ("    pid = tl.num_programs(0)\n", 0, "calls no tl.program_id"),
        ("    pid = tl.program_id(1)\n", 0, "calls no tl.program_id"),
        ("    for t in range(tl.program_id(0), N, B):\n        t += 1\n", 8, "tile id of a persistent loop"),
        (
            "    p = tl.program_id(0)\n    for t in range(p, N, B):\n        tl.store(x_ptr + t, p)\n",
            9,
            "used here for more",
        ),
        (
            "    p = tl.program_id(0)\n    for t in range(p, tl.load(x_ptr), B):\n        tl.store(x_ptr, t)\n",
            8,
            "how many tiles",
        ),
    ],
)
def test_what_cannot_be_rewritten_is_refused_by_its_line(tmp_path, body, line, words):
    launch = launch_of(tmp_path / "k.py", HEAD + "def k(x_ptr, N, B: tl.constexpr):\n" + body)
    with pytest.raises(RewriteError, match=words) as caught:
        rewritten(launch, at="tile" if "for" in body else "auto")
    assert caught.value.line == line and str(launch.path) in str(caught.value)


def test_a_helper_that_other_kernels_call_is_refused(tmp_path):
    helper = "@triton.jit\ndef where():\n    return tl.program_id(0)\n\n\n"
    text = (
        HEAD.removesuffix("@triton.jit\n")
        + helper
        + "@triton.jit\ndef k(x_ptr, N, B):\n    tl.store(x_ptr + where(), 1)\n"
    )
    assert "tl.store(x_ptr + where(swizzled_pid), 1)" in rewritten(launch_of(tmp_path / "k.py", text)).text.decode()
    other = "\n\n@triton.jit\ndef other(x_ptr):\n    tl.store(x_ptr + where(), 1)\n"
    with pytest.raises(RewriteError, match=r"k.py:17: where calls tl.program_id and is used here outside k"):
        rewritten(launch_of(tmp_path / "k.py", text + other))


def test_a_loop_that_is_not_understood_leaves_the_program_id(tmp_path):
    body = "    p = tl.program_id(0)\n    for t in range(p, N, B):\n        tl.store(x_ptr + t, p)\n"
    found = rewritten(launch_of(tmp_path / "k.py", HEAD + "def k(x_ptr, N, B: tl.constexpr):\n" + body))
    assert found.at == "program" and "k.py:9:" in found.note


def test_a_name_that_the_kernel_lacks_is_refused(tmp_path):
    with pytest.raises(RewriteError, match="reads M, which is no parameter of k"):
        rewritten(launch_of(tmp_path / "k.py", PLAIN), "pid = (pid + M - M) % num_pids\n", sizes={"M": 3})
    with pytest.raises(RewriteError, match=r"reads num_pid_m \(6 here\).*write num_pid_m = tl.cdiv"):
        rewritten(launch_of(tmp_path / "k.py", PLAIN), "group_m(size=2)", grid=Grid((24,), (6, 4)))


@pytest.mark.parametrize(
    ("text", "words"), [("def k(:\n", "no Python"), ("x = 1\n", "no function 'k'"), ("\0", "no Python")]
)
def test_what_is_no_kernel_is_refused(tmp_path, text, words):
    with pytest.raises(RewriteError, match=words):
        rewritten(launch_of(tmp_path / "k.py", text))


# ---- writing


def test_written_whole_and_never_over_the_original(tmp_path):
    launch = launch_of(tmp_path / "k.py", PLAIN)
    found = rewritten(launch)
    out = tmp_path / "out.py"
    write_rewritten(found, out)
    assert out.read_bytes() == found.text and {p.name for p in tmp_path.iterdir()} == {"k.py", "out.py"}
    assert out.stat().st_mode & 0o777 == launch.path.stat().st_mode & 0o777
    for place in (launch.path, tmp_path, tmp_path / "no" / "out.py"):
        with pytest.raises(RewriteError):
            check_target(found, place)
        with pytest.raises(RewriteError):
            write_rewritten(found, place)
    assert launch.path.read_text() == PLAIN


def test_a_square_does_not_pass_columns_off_as_rows():
    """Both counts are 8 here; at other sizes the block of the launch tells them apart, and rows are the quotient."""
    text = "def k(c, M, N, B: tl.constexpr):\n    n = tl.program_id(0) % tl.cdiv(N, B)\n"
    launch = Launch(
        path=Path("k.py"), function="k", arguments={"M": 1024, "N": 1024}, constexprs={"B": 128}, grid=(64,)
    )
    others = [(Grid((20,), (5, 4)), {"M": 640, "N": 512})]
    found = tile_counts(
        ("num_pid_m", "num_pid_n"), Definitions(ast.parse(text).body[0]), launch, Grid((64,), (8, 8)), others, "total"
    )
    assert found == {"num_pid_m": "total // tl.cdiv(N, B)", "num_pid_n": "tl.cdiv(N, B)"}


def test_columns_may_be_a_parameter_that_the_id_is_divided_by():
    text = "def k(c, N, NB, B: tl.constexpr):\n    z = tl.program_id(0) % NB\n    t = tl.program_id(0) // NB\n"
    launch = Launch(path=Path("k.py"), function="k", arguments={"N": 64, "NB": 12}, constexprs={"B": 16}, grid=(64,))
    definitions = Definitions(ast.parse(text).body[0])
    found = tile_counts(("num_pid_m", "num_pid_n"), definitions, launch, Grid((192,), (16, 12)), [], "total")
    assert found == {"num_pid_m": "total // NB", "num_pid_n": "NB"}
