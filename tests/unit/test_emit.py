"""Do the emitted Triton, HIP and text compute what the candidate computes, and can a person read them?"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swizzle_sim.language import (
    Grid,
    Swizzle,
    arguments,
    emit_hip,
    emit_text,
    emit_triton,
    family,
    parse_form,
)
from swizzle_sim.language.fold import folded
from tests.capture.same_trace import needs_triton
from tests.naive_int32 import NaiveFault, evaluate
from tests.strategies import forms
from tests.unit import emit_cases
from xcd_model.errors import LanguageError

ROOT = Path(__file__).parents[2]
TEXTS = {**emit_cases.FAMILY_TEXTS, **emit_cases.TEXTS}
FORMS = {name: parse_form(text) for name, text in TEXTS.items()}
POINTS = [(name, grid) for name, form in FORMS.items() for grid in emit_cases.GRIDS if emit_cases.has_grid(form, grid)]


def wanted(form, grid):
    return [evaluate(form, known) for known, _ in emit_cases.values(form, grid)]


# ---- text


@pytest.mark.parametrize("name", FORMS)
def test_text_parses_back(name):
    assert parse_form(emit_text(FORMS[name])) == FORMS[name]
    assert emit_text(parse_form(emit_text(FORMS[name]))) == emit_text(FORMS[name])


@st.composite
def expressions(draw, depth=4):
    """Texts of integer expressions, every part bracketed, so that only the emitter decides on brackets."""
    if depth == 0 or draw(st.booleans()):
        return draw(st.sampled_from(["pid", "num_pids", "a", "tl.program_id(1)", "7", "-3", "-0", "True", "False"]))
    one, other = draw(expressions(depth - 1)), draw(expressions(depth - 1))
    op = draw(st.sampled_from("+ - * // % << >> & | ^ min max tl.cdiv tl.where if ~ neg".split()))  # noqa: SIM905
    if op in ("min", "max", "tl.cdiv"):
        return f"{op}({one}, {other})"
    if op in ("tl.where", "if"):
        condition = draw(conditions(depth - 1))
        return (
            f"tl.where({condition}, {one}, {other})" if op == "tl.where" else f"(({one}) if {condition} else ({other}))"
        )
    if op in ("~", "neg"):
        return f"({'~' if op == '~' else '-'}({one}))"
    return f"(({one}) {op} ({other}))"


@st.composite
def conditions(draw, depth):
    if depth == 0 or draw(st.booleans()):
        op = draw(st.sampled_from(["<", "<=", ">", ">=", "==", "!="]))
        return f"(({draw(expressions(max(depth - 1, 0)))}) {op} ({draw(expressions(max(depth - 1, 0)))}))"
    if draw(st.booleans()):
        return f"(not {draw(conditions(depth - 1))})"
    return f"({draw(conditions(depth - 1))} {draw(st.sampled_from(['and', 'or']))} {draw(conditions(depth - 1))})"


@settings(max_examples=300, deadline=None)
@given(expressions(), conditions(3))
def test_brackets_are_enough_for_any_expression(value, condition):
    form = parse_form(f"a = num_pids\nif {condition}:\n    a = {value}\npid = {value}\n")
    assert parse_form(emit_text(form)) == form


def test_text_has_few_brackets():
    plain = "pid = (pid % num_xcds) * (num_pids // num_xcds) + pid // num_xcds\n"
    assert emit_text(parse_form(plain.replace("+ pid // num_xcds", "+ ((pid) // (num_xcds))"))) == plain


# ---- Triton


def kernel_source(form):
    """Emitted helper with a kernel that loads its arguments from a table and stores its answer."""
    names = [one for one in arguments(form) if not one.endswith(")")]
    columns = {one: k for k, one in enumerate(names)}
    given_ = [
        "XCDS" if one.lower() == "num_xcds" else f"tl.load(table + row * {len(names)} + {columns[one]})"
        for one in names
    ]
    results = [f"r{k}" for k in range(len(form.results))]
    lines = [
        emit_triton(form),
        "",
        "@triton.jit",
        "def kernel(table, out, XCDS: tl.constexpr):",
        "    row = tl.program_id(1) + tl.num_programs(1) * tl.program_id(2)",
        "    row = tl.program_id(0) + tl.num_programs(0) * row",
        f"    {', '.join(results)} = swizzle({', '.join(given_)})",
        *(f"    tl.store(out + row * {len(results)} + {k}, {one})" for k, one in enumerate(results)),
    ]
    return "\n".join(lines) + "\n"


def small_grid(form):
    return next(grid for grid in (Grid((3, 5)), Grid((3, 5, 2))) if emit_cases.has_grid(form, grid))


def run_triton(mode, names, folder):
    """Answers of Triton itself, in a process of its own."""
    cases = {}
    for name in names:
        form, grid = FORMS[name], small_grid(FORMS[name])
        (folder / f"case_{name}.py").write_text(kernel_source(form))
        keep = [not one.endswith(")") for one in arguments(form)]
        rows = [[v for v, kept in zip(row, keep, strict=True) if kept] for _, row in emit_cases.values(form, grid)]
        cases[f"case_{name}"] = {"grid": grid.launch, "table": rows, "n_results": len(form.results)}
    (folder / "cases.json").write_text(json.dumps(cases))
    environment = {**os.environ, "TRITON_CACHE_DIR": str(folder / "cache")}
    environment.pop("TRITON_INTERPRET", None)
    if mode == "interpret":
        environment["TRITON_INTERPRET"] = "1"
    command = [sys.executable, "-m", "tests.unit.run_triton", mode, str(folder)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads((folder / "answers.json").read_text())


@needs_triton
def test_triton_interprets_every_helper(tmp_path):
    found = run_triton("interpret", FORMS, tmp_path)
    for name, form in FORMS.items():
        assert [tuple(row) for row in found[f"case_{name}"]] == wanted(form, small_grid(form)), name


@needs_triton
def test_triton_compiles_helpers_for_mi300x(tmp_path):
    names = ("chunked_hilbert", "loop_makes", "changed_input", "loop_in_branch", "conditions", "truth", "bits")
    assert all(run_triton("compile", names, tmp_path).values())


def test_triton_text_is_what_a_person_would_write():
    source = emit_triton(parse_form(family("contiguous")), "remap")
    assert source.startswith("import triton\nimport triton.language as tl\n\n\n# Workgroup id to tile")
    assert "#     pid = remap(pid, num_pids, NUM_XCDS=8)\n" in source
    assert source.endswith(
        "@triton.jit\n"
        "def remap(pid, num_pids, NUM_XCDS: tl.constexpr):\n"
        "    xcd = pid % NUM_XCDS\n"
        "    pid = xcd * (num_pids // NUM_XCDS) + tl.minimum(xcd, num_pids % NUM_XCDS) + pid // NUM_XCDS\n"
        "    return pid\n"
    )


# ---- HIP


def cpp_program():
    """One C++ program: case number and arguments in, answers out."""
    prelude, _ = emit_hip(FORMS["row"]).split("#endif\n\n", 1)
    parts = ["#include <cstdio>\n", prelude, "#endif\n"]
    branches = []
    for k, form in enumerate(FORMS.values()):
        _, function = emit_hip(form).split("#endif\n\n", 1)
        parts.append(f"namespace case_{k} {{\n{function}}}\n")
        count = len(arguments(form))
        call = f"case_{k}::swizzle({', '.join(f'a[{i}]' for i in range(count))})"
        if len(form.results) == 1:
            branches.append(f'case {k}: std::printf("%d\\n", {call}); break;')
        else:
            names, form_text = ", ".join("uvw"[: len(form.results)]), " ".join(["%d"] * len(form.results))
            show = f'std::printf("{form_text}\\n", {names})'
            branches.append(f"case {k}: {{ const auto [{names}] = {call}; {show}; break; }}")
    body = "\n".join(branches)
    parts.append(
        "int main() {\n  int k, n, a[16] = {};\n"
        '  while (std::scanf("%d %d", &k, &n) == 2) {\n'
        '    for (int i = 0; i < n; ++i) if (std::scanf("%d", &a[i]) != 1) return 1;\n'
        f"    switch (k) {{\n{body}\n    }}\n  }}\n  return 0;\n}}\n"
    )
    return "".join(parts)


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
def test_hip_text_compiles_cleanly_and_computes_the_candidate(tmp_path):
    source, program = tmp_path / "swizzles.cpp", tmp_path / "swizzles"
    source.write_text(cpp_program())
    flags = ["-std=c++17", "-Wall", "-Wextra", "-Werror", "-O1", "-fsanitize=undefined", "-fno-sanitize-recover"]
    built = subprocess.run(["g++", *flags, str(source), "-o", str(program)], capture_output=True, text=True)
    assert built.returncode == 0, built.stderr[:3000]
    order = list(FORMS)
    lines, answers = [], []
    for name, grid in POINTS:
        answers += wanted(FORMS[name], grid)
        for _, row in emit_cases.values(FORMS[name], grid):
            lines.append(" ".join(map(str, (order.index(name), len(row), *row))))
    done = subprocess.run([str(program)], input="\n".join(lines), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:3000]
    found = [tuple(map(int, line.split())) for line in done.stdout.splitlines()]
    assert found == answers


def test_hip_text_is_what_a_person_would_write():
    source = emit_hip(parse_form(family("chunked(chunk=4)")), "remap")
    assert source.endswith(
        "__host__ __device__ __forceinline__ int remap(int pid, int num_pids, int num_xcds) {\n"
        "    int chunk = 4;\n"
        "    int block = num_xcds * chunk;\n"
        "    int mapped = (num_pids / block) * block;\n"
        "    if (pid < mapped) {\n"
        "        int local = pid / num_xcds;\n"
        "        pid = (local / chunk) * block + (pid % num_xcds) * chunk + local % chunk;\n"
        "    }\n"
        "    return pid;\n"
        "}\n"
    )


def test_a_loop_bound_that_the_body_changes_is_looked_at_once():
    source = emit_hip(parse_form("n = 3\nfor i in range(n):\n    n = n + 1\npid = n\n"))
    assert "const int i_stop = n;\n    for (int i = 0; i < i_stop; ++i) {" in source


def test_arguments_come_in_a_stated_order():
    form = parse_form("pid = BLOCK + num_xcds + num_pids + pid + num_pid_m + tl.program_id(1) + A\n")
    assert arguments(form) == ("pid", "program_id(1)", "num_pid_m", "num_pids", "A", "BLOCK", "num_xcds")


@pytest.mark.parametrize(
    ("emit", "name"),
    [
        *((emit, name) for emit in (emit_triton, emit_hip) for name in ("", "a b", "1a", "tl", "x;y", "é", "_x")),
        *((emit_triton, "lambda"), (emit_triton, "triton"), (emit_hip, "class"), (emit_hip, "main")),
    ],
)
def test_a_function_name_that_is_none_or_a_word_of_the_target_is_refused(emit, name):
    with pytest.raises(LanguageError, match="cannot name") as caught:
        emit(FORMS["row"], name)
    assert caught.value.code == "name"


# ---- Is a folded form the same order on its launch, and is what folds away gone?
LAUNCHES = (Grid((35,), (7, 5)), Grid((128,), (32, 4)), Grid((96,), (8, 12)), Grid((8, 6)), Grid((4, 4, 4)))


def text_of(text, grid, num_xcds=8, sizes=None):
    return emit_text(folded(Swizzle.parse(text).form, grid, num_xcds, sizes or {}))


@pytest.mark.parametrize("name", FORMS)
def test_every_family_and_construct_keeps_its_answers(name):
    grids = [grid for grid in (*emit_cases.GRIDS, *LAUNCHES) if emit_cases.has_grid(FORMS[name], grid)]
    for grid in grids:
        check_answers(FORMS[name], grid, emit_cases.SIZES)
        short = folded(FORMS[name], grid, 8, emit_cases.SIZES)
        assert name in emit_cases.TEXTS or not {
            one for one in short.inputs if one.startswith("num_") or one == "NUM_XCDS"
        }
    assert grids


@settings(max_examples=200, deadline=None)
@given(forms(), st.sampled_from([1, 5, 24]))
def test_random_forms_keep_their_answers(form, n):
    check_answers(form, Grid((n,)), {"M": 7})


def check_answers(form, grid, sizes):
    """Compare with the literal reading of the language, for the workgroups where that has an answer."""
    short = folded(form, grid, emit_cases.NUM_XCDS, sizes)
    known = list(emit_cases.environments(sorted({*form.inputs, *short.inputs}), grid, sizes))
    try:
        wanted = [evaluate(form, values) for values in known]
    except NaiveFault:
        return  # a candidate that is refused on some workgroup is never emitted
    assert [evaluate(short, values) for values in known] == wanted


def test_what_this_launch_cannot_tell_apart_is_gone():
    even, ragged = (text_of(family("group_m(size=8)"), Grid((n * 4,), (n, 4))) for n in (256, 255))
    assert "min" not in even and "num_" not in even and "min" in ragged
    assert text_of("pid = pid + (1 if num_pids > 5 else 0) - 1", Grid((64,))) == "pass\n"
    assert "if" not in text_of("if num_xcds == 8:\n    pid = num_pids - 1 - pid", Grid((64,)))
    assert "if" in text_of("if pid < 32:\n    pid = 31 - pid", Grid((64,)))
    assert text_of("a = pid * 3\nb = a\npid = num_pids - 1 - pid", Grid((64,))) == "pid = 63 - pid\n"
    assert text_of("pid = (pid + M) % num_pids", Grid((64,)), sizes={"M": 5}) == "pid = (pid + 5) % 64\n"
    branch = "if pid >= 4:\n    pid = 4 + (pid // (pid // 4)) % 4 + min(pid, 3) - 3\nelse:\n    pid = pid"
    assert "min" not in text_of(branch, Grid((8,)))  # elsewhere pid is smaller than 3, and pid // 4 is zero
    loop = text_of("a = 0\nfor i in range(num_xcds):\n    a = a + i\npid = (pid + a) % num_pids", Grid((64,)))
    assert "for i in range(8)" in loop and "(pid + a) % 64" in loop  # what a loop changes is left alone
