"""Do check, capture and the rewrite read the same kernels, parameters and program ids out of a file?"""

import ast
from pathlib import Path

import pytest

from swizzle_sim.capture.init_kernel import write_declaration
from swizzle_sim.language import Grid, Swizzle, family
from swizzle_sim.rewrite import rewrite_kernel
from swizzle_sim.rewrite.source import EditableSource
from swizzle_sim.testing import read_prologue
from swizzle_sim.testing.files import targets_of
from swizzle_sim.triton_source import read_source
from swizzle_sim.triton_source.parameters import facts_of
from swizzle_sim.workload.launch import Array, Launch
from xcd_model.errors import RewriteError, SwizzleSimError

USUAL = "import triton\nimport triton.language as tl\n"
BODY = """
def kernel(x_ptr, N, BLOCK: {tl}constexpr):
    pid = {tl}program_id({axis}) + 0
    {tl}store(x_ptr + pid * BLOCK, N)
"""


def plain(head, decorator, tl="tl.", axis="0"):
    return f"{head}\n\n@{decorator}{BODY.format(tl=tl, axis=axis)}"


def indented(body):
    return body.format(tl="tl.", axis="0").replace("\n", "\n    ").rstrip()


# spelling: text, of a file with the one function of BODY
USUALLY = {
    "usual": plain(USUAL, "triton.jit"),
    "axis by name": plain(USUAL, "triton.jit", axis="axis=0"),
    "renamed modules": plain("import triton as tr\nimport triton.language as L\n", "tr.jit", "L."),
    "language from triton": plain("import triton\nfrom triton import language\n", "triton.jit", "language."),
    "whole dotted name": plain("import triton\nimport triton.language\n", "triton.jit", "triton.language."),
    "names one by one": plain(
        "from triton import jit\nfrom triton.language import program_id, store, constexpr\n", "jit", ""
    ),
    "names one by one, renamed": plain(
        "from triton.language import program_id as which\n" + USUAL, "triton.jit"
    ).replace("tl.program_id", "which"),
    "all names": plain("import triton\nfrom triton.language import *\n", "triton.jit", ""),
    "assigned alias": plain("import triton\n\ntl = triton.language\n", "triton.jit"),
    "core": plain(USUAL, "triton.jit", "tl.core."),
    "of the user's own module": plain("import triton\nfrom compat import tl\n", "triton.jit"),
    "decorator with arguments": plain(USUAL, "triton.jit(do_not_specialize=['N'])"),
    "partial decorator": plain(
        "from functools import partial\n" + USUAL, "partial(triton.jit, do_not_specialize=['N'])"
    ),
    "autotuned with heuristics": plain(
        USUAL,
        "triton.autotune(configs=[triton.Config({'BLOCK': 32})], key=['N'])\n"
        "@triton.heuristics({'EVEN': lambda a: a['N'] % 2 == 0})\n@triton.jit",
    ),
    "under a condition": USUAL + "\nif True:\n\n    @triton.jit" + indented(BODY) + "\n",
    "where triton may be missing": "try:\n    import triton\n    import triton.language as tl\nexcept ImportError:\n"
    "    triton = None\n" + plain("", "triton.jit").lstrip("\n"),
    "among other functions": "import numba\n"
    + plain(USUAL, "triton.jit")
    + "\n\n@numba.jit\ndef fast(x):\n    return x\n"
    "\n\ndef run(x):\n    kernel[(4,)](x, 3, BLOCK=2, num_warps=8)\n",
}
# spelling: text, Triton functions of the file, parameters of `kernel`, axes of its program ids
CORPUS = {name: (text, ["kernel"], ["x_ptr", "N", "BLOCK"], [0]) for name, text in USUALLY.items()} | {
    "two axes": (
        USUAL + "\n\n@triton.jit\ndef kernel(x_ptr, stride, /, *, ROWS: tl.constexpr):\n"
        "    pid_x, pid_y = tl.program_id(0), tl.program_id(1)\n"
        "    pid_x = pid_x + 0\n"
        "    tl.store(x_ptr + pid_y * stride + pid_x * ROWS, 1)\n",
        *(["kernel"], ["x_ptr", "stride", "ROWS"], [0, 1]),
    ),
    "ids in a helper": (
        USUAL + "\n\n@triton.jit\ndef row():\n    return tl.program_id(axis=1)\n\n\n"
        "@triton.jit\ndef kernel(x_ptr, N):\n"
        "    pid_x = tl.program_id(0)\n    pid_y = row()\n    tl.store(x_ptr + pid_y * N + pid_x, 1)\n",
        *(["row", "kernel"], ["x_ptr", "N"], [0, 1]),
    ),
    "letters of two bytes": (
        USUAL + "\n\n@triton.jit\ndef kernel(größe, x_ptr):\n"
        "    é, pid = größe, tl.program_id(0) + 0\n    tl.store(x_ptr + pid, é)\n",
        *(["kernel"], ["größe", "x_ptr"], [0]),
    ),
}


@pytest.fixture
def file(tmp_path) -> Path:
    return tmp_path / "kernels.py"


@pytest.mark.parametrize(("text", "kernels", "parameters", "axes"), CORPUS.values(), ids=list(CORPUS))
def test_the_three_readers_agree(file, text, kernels, parameters, axes):
    file.write_text(text, encoding="utf-8")
    ast.parse(text)

    # check
    assert [one.function for name in kernels for one in targets_of(file, name) if one.kind == "read"] == kernels
    prologue = read_prologue(file, "kernel")
    assert list(prologue.parameters) == parameters and prologue.axes == len(axes)

    # capture
    facts = facts_of(read_source(file), "kernel")
    assert [one.name for one in facts.parameters] == parameters and facts.axes == len(axes)
    assert next(one for one in facts.parameters if one.name == "x_ptr").role == "out"
    for name in kernels:
        write_declaration(f"{file}:{name}", None)

    # rewrite
    source = EditableSource(file, file.read_bytes(), "kernel")
    assert list(source.facts.kernels) == kernels
    calls = source.program_ids()
    assert sorted(call.axis for call in calls) == axes
    texts = [source.code(one.call) for one in calls]
    assert all("program_id" in text or "which" in text for text in texts)
    assert all(text.split("\n")[0] in source.line(one.line) for one, text in zip(calls, texts, strict=True))

    # and what the rewrite writes is read in the same way
    grid = Grid((4, 6)[: len(axes)])
    array = Array(shape=(64,), dtype="fp32", role="out")
    launch = Launch(path=file, function="kernel", arguments={"x_ptr": array}, constexprs={}, grid=grid.launch)
    found = rewrite_kernel(launch, Swizzle.parse(family("contiguous")), grid=grid, num_xcds=8, sizes={})
    file.write_bytes(found.text)
    rewritten = read_source(file)
    assert sorted(rewritten.kernels) == sorted([*kernels, "swizzle"])
    assert [one.arg for one in rewritten.kernel("kernel").args.args + rewritten.kernel("kernel").args.kwonlyargs][
        -1
    ] == "NUM_XCDS"
    assert {one.axis for one in rewritten.program_ids(rewritten.kernel("kernel"))} == set(axes)


NO_KERNELS = {
    "no decorator": USUAL + BODY.format(tl="tl.", axis="0"),
    "another compiler": plain("import numba\nimport triton.language as tl\n", "numba.jit"),
    "inside two functions": USUAL + "".join(f"\n\ndef {name}():\n    @triton.jit"
    + indented(BODY) + "\n\n    return kernel\n" for name in ("make", "build")),
    "a method": USUAL + "\n\nclass Kernels:\n    @triton.jit"
    + indented(BODY) + "\n\n",
}  # fmt: skip


@pytest.mark.parametrize("text", NO_KERNELS.values(), ids=list(NO_KERNELS))
def test_what_is_no_kernel_is_one_for_none_of_those_that_run_it(file, text):
    file.write_text(text)
    for read in (lambda: write_declaration(f"{file}:kernel", None), lambda: read_source(file).kernel("kernel")):
        with pytest.raises(SwizzleSimError, match=r"no @triton\.jit function kernel at the top level; there is none"):
            read()


def test_positions_are_those_of_the_characters(file):
    text = "# -*- coding: latin-1 -*-\n" + plain(USUAL, "triton.jit").replace("    pid =", "    é = 'é'; pid =")
    file.write_bytes(text.replace("\n", "\r\n").replace("    é", "\té").replace("    tl", "\ttl").encode("latin-1"))
    source = EditableSource(file, file.read_bytes(), "kernel")
    assert [source.code(one.call) for one in source.program_ids()] == ["tl.program_id(0)"]


def test_an_id_inside_a_text_is_refused_by_its_line(file):
    file.write_text(plain(USUAL, "triton.jit") + "    tl.device_print(f'{tl.program_id(0)}')\n")
    source = EditableSource(file, file.read_bytes(), "kernel")
    with pytest.raises(RewriteError, match="inside a text") as caught:  # before Python 3.12 it has no place
        source.program_ids()
    assert caught.value.line > 0


def test_an_id_of_another_module_is_none(file):
    file.write_text(plain("import triton\nimport other as tl\n", "triton.jit"))
    source = EditableSource(file, file.read_bytes(), "kernel")
    assert source.program_ids() == [] and facts_of(source.facts, "kernel").axes == 1
