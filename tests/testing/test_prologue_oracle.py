"""Does an extracted prologue compute what the kernel's own Python does, whatever stands around it?"""

import textwrap

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from swizzle_sim.language import Grid, Swizzle, emit_text
from swizzle_sim.language.vm import run
from swizzle_sim.testing import read_prologue
from tests.strategies import forms
from tests.testing.conftest import HEAD

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
    file.write_text(HEAD + around.format(body=textwrap.indent(text, "    ")))
    found = read_prologue(file, "kernel", "pid").text  # an id that goes on as it came is a tile only if it is said
    want = run(Swizzle.parse(text).program, Grid((n,)), num_xcds, {"M": size})
    got = run(Swizzle.parse(found.text).program, Grid((n,)), num_xcds, {"M": size})
    if want.fault is None:  # a statement that does not matter may fault in the one and be gone in the other
        assert got.fault is None
        np.testing.assert_array_equal(got.ids, want.ids)
