"""Does an extracted prologue compute what the kernel's own Python does, whatever stands around it?"""

import sys
import textwrap
import types

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from swizzle_sim.language import Grid, Swizzle, emit_text
from swizzle_sim.language.vm import run
from swizzle_sim.testing import read_prologue
from tests.strategies import forms
from tests.testing.test_prologue import FILE

HEADER = "import triton\nimport triton.language as tl\n\n"
KERNEL = """
@triton.jit
def kernel(x_ptr, M, num_pids, num_xcds, EVEN: tl.constexpr = True):
    noise = x_ptr + M
    pid = tl.program_id(0)
    tl.assume(pid >= 0)
{body}
    noise = noise * 1.5
    tl.store(x_ptr + pid, noise)
"""
CALLED = """
@triton.jit
def inner(pid, M, num_pids, num_xcds):
    unused = tl.arange(0, 8)
{body}
    return pid

@triton.jit
def kernel(x_ptr, M, num_pids, num_xcds):
    c = M + 1
    pid = inner(tl.program_id(0).to(tl.int64), M, num_pids=num_pids, num_xcds=num_xcds)
    tl.store(x_ptr + pid * c, c)
"""


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(forms(), st.sampled_from((KERNEL, CALLED)), st.integers(1, 30), st.integers(1, 8), st.integers(-3, 50))
def test_a_form_inside_a_kernel_is_found_again(tmp_path_factory, form, around, n, num_xcds, size):
    text = emit_text(form)
    file = tmp_path_factory.mktemp("kernels") / "kernel.py"
    file.write_text(HEADER + around.format(body=textwrap.indent(text, "    ")))
    found = read_prologue(file, "kernel", "pid").text  # an id that goes on as it came is a tile only if it is said
    want = run(Swizzle.parse(text).program, Grid((n,)), num_xcds, {"M": size})
    got = run(Swizzle.parse(found.text).program, Grid((n,)), num_xcds, {"M": size})
    if want.fault is None:  # a statement that does not matter may fault in the one and be gone in the other
        assert got.fault is None
        np.testing.assert_array_equal(got.ids, want.ids)


class Seen(Exception):
    """The first memory access, with the caller's variables."""


def run_as_python(pid, **given):
    """Run ``gemm`` of the file as plain Python under a language of our own, up to its first load."""

    def stop(*_):
        raise Seen(sys._getframe(1).f_locals)

    class Id(int):
        def to(self, _):
            return int(self)

    tl = types.SimpleNamespace(
        program_id=lambda axis: Id(pid),
        cdiv=lambda a, b: (a + b - 1) // b,
        assume=lambda _: None,
        arange=np.arange,
        load=stop,
        int64=None,
        constexpr=None,
    )
    text = FILE.read_text(encoding="utf-8").partition('sys.exit("this file was run")')[2]
    names = {"tl": tl, "triton": types.SimpleNamespace(jit=lambda function: function)}
    exec(text, names)
    with pytest.raises(Seen) as seen:
        names["gemm"](a_ptr=0, b_ptr=0, c_ptr=0, K=1, stride_am=1, **given)
    return seen.value.args[0]["pid_m"], seen.value.args[0]["pid_n"]


def test_the_gemm_run_as_python_takes_the_same_tiles():
    for m, n, num_xcds in ((3, 5, 8), (4, 4, 3), (1, 7, 2)):
        given = {"M": m * 16 - 3, "N": n * 32, "BLOCK_M": 16, "BLOCK_N": 32}
        want = [run_as_python(pid, NUM_XCDS=num_xcds, **given) for pid in range(m * n)]
        text = read_prologue(FILE, "gemm", given=given).text.text
        got = Swizzle.parse(text).permutation(Grid((m * n,), (m, n)), num_xcds, given)
        assert [divmod(int(tile), n) for tile in got] == want
