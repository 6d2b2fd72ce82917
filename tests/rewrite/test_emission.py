"""Is every spelling of a swizzle the same order, is the cheapest one chosen, and is what cannot be spelled refused?"""

import numpy as np
import pytest

from swizzle_sim.capture.workload import of_kernel
from swizzle_sim.language import Grid, Swizzle, family
from swizzle_sim.rewrite import rewrite_kernel, rewrite_workload
from swizzle_sim.rewrite.check import run_side_by_side
from swizzle_sim.rewrite.guard import ALL, GENERAL, emissions, named
from swizzle_sim.workload.kernels import kernel
from swizzle_sim.workload.launch import Array, Launch
from tests.capture.same_trace import needs_triton
from tests.rewrite import workloads
from xcd_model.errors import RewriteError

FOLDED, FOLDED_ELSE_LAUNCH, _, HANDED, *_ = ALL


def rewritten(name, spec, emission, num_xcds=8, **sizes):
    work = of_kernel(kernel(name, **sizes))
    swizzle = Swizzle.parse(family(spec), spec)
    return work, swizzle, rewrite_workload(work, swizzle, num_xcds=num_xcds, emission=emission)


@pytest.mark.parametrize("emission", ALL, ids=lambda one: one.name)
@pytest.mark.parametrize(("name", "spec"), [("conv_2d", "group_m(size=8)"), ("gemm", "group_n(size=3)")])
def test_every_spelling_is_the_candidates_order_on_the_launch(name, spec, emission):
    work, swizzle, found = rewritten(name, spec, emission)
    wanted = swizzle.permutation(work.grid, 8, work.problem)
    assert np.array_equal(found.guarded.swizzle.permutation(work.grid, 8, work.problem), wanted)
    for grid, sizes in work.others:  # elsewhere it need not be this order, and is a bijection
        order = found.guarded.swizzle.permutation(grid, 8, sizes)
        assert sorted(order) == list(range(grid.num_pids))
    assert named(emission.name) == emission


def test_a_folded_form_has_constants_behind_a_condition():
    *_, found = rewritten("conv_2d", "group_m(size=8)", FOLDED_ELSE_LAUNCH)
    text = found.text.decode()
    helper = text[text.index("def swizzle") : text.index("def conv_2d")]
    assert "if num_pid_n == 4 and num_pids == 1024:" in helper and "return pid" in helper
    assert "minimum" not in helper and "else" not in helper
    assert "launch order\n# elsewhere" in text and found.guarded.condition == "num_pid_n == 4 and num_pids == 1024"
    *_, general = rewritten("conv_2d", "group_m(size=8)", FOLDED)
    assert "tl.minimum" in general.text.decode().split("else:")[1]
    ragged = rewritten("conv_2d", "group_m(size=8)", FOLDED_ELSE_LAUNCH, H=120, W=136)[2].text.decode()
    assert "tl.minimum" in ragged.split("def conv_2d")[0]  # 2 * 15 * 9 patches: 8 does not divide them


def test_coordinates_are_handed_over_where_the_kernel_takes_them_apart():
    *_, found = rewritten("gemm", "group_m(size=8)", HANDED)
    text = found.text.decode()
    assert "swizzled_m, swizzled_n = swizzle(" in text
    assert "pid_m = swizzled_m" in text and "pid_n = swizzled_n" in text and "pid // num_pid_n\n    pid_n" not in text


@needs_triton
@pytest.mark.parametrize("emission", [FOLDED, HANDED], ids=lambda one: one.name)
def test_outputs_are_equal_at_the_launch_and_at_another_size(emission):
    work, _, found = rewritten(
        "gemm", "group_m(size=2)", emission, M=64, N=96, K=16, BLOCK_M=16, BLOCK_N=16, BLOCK_K=16
    )
    other = work.at({**work.problem, "M": 80})
    cases = run_side_by_side(found, [(work, None, "this launch"), (other, None, "another size")])
    assert [case.whole for case in cases] == [True, True] and cases[0].moved > 0


KERNEL = """
import triton
import triton.language as tl


@triton.jit
def k(x_ptr, N, B: tl.constexpr):
    pid = tl.program_id(0)
    columns = tl.cdiv(N, B)
    row = pid // columns
    tl.store(x_ptr + row * N + pid % {divisor} * B + tl.arange(0, B), {value})
"""


@pytest.mark.parametrize(
    ("divisor", "value", "line"), [("columns", "pid", 11), ("8", "1", 11), ("(columns + 1)", "1", 11)]
)
def test_a_program_id_that_is_used_otherwise_is_not_replaced(tmp_path, divisor, value, line):
    path = tmp_path / "k.py"
    path.write_text(KERNEL.format(divisor=divisor, value=value))
    arguments = {"x_ptr": Array(shape=(6, 64), dtype="fp32", role="out"), "N": 64}
    launch = Launch(path=path, function="k", arguments=arguments, constexprs={"B": 16}, grid=(24,))
    swizzle, grid = Swizzle.parse(family("group_m(size=3)")), Grid((24,), (6, 4))
    assert rewrite_kernel(launch, swizzle, grid=grid, num_xcds=8, sizes={}, emission=FOLDED).text
    with pytest.raises(RewriteError, match=rf"k\.py:{line}: pid is read here otherwise than as a row or a column"):
        rewrite_kernel(launch, swizzle, grid=grid, num_xcds=8, sizes={}, emission=HANDED)


def test_what_cannot_be_handed_over_is_refused():
    with pytest.raises(RewriteError, match="where the swizzle computes them"):
        rewritten("gemm", "contiguous", HANDED)
    with pytest.raises(RewriteError, match="where the swizzle computes them"):
        work = workloads.add_2d()
        rewrite_workload(work, Swizzle.parse("pid_m = num_pid_m - 1 - pid_m"), num_xcds=8, emission=HANDED)


def test_choices_that_are_none_are_refused():
    assert emissions() == ALL and emissions("general") == (FOLDED, GENERAL, HANDED, ALL[-1])
    assert all(one.elsewhere == "launch-order" and one.folded for one in emissions("launch-order"))
    with pytest.raises(RewriteError, match="elsewhere = 'nowhere': one of any, general, launch-order"):
        emissions("nowhere")
    with pytest.raises(RewriteError, match="no emission is called 'best'; there is: this launch, else general"):
        named("best")


def test_the_command_takes_what_other_sizes_shall_get(typed):
    words = ("rewrite", "gemm", "M=1024", "N=1024", "K=64", "--swizzle", "group_m(size=2)", "--no-check", "--json")
    documents = {one: typed(*words, "--elsewhere", one).json for one in ("any", "general", "launch-order")}
    assert {one: document["emission"] for one, document in documents.items()} == {
        "any": "general",  # nothing is compiled, so nothing says that another is cheaper
        "general": "general",
        "launch-order": "this launch, else launch order",
    }
    refused = typed(*words, "--elsewhere", "nowhere")
    assert refused.code == 2 and "elsewhere = 'nowhere': one of any, general, launch-order" in refused.out
