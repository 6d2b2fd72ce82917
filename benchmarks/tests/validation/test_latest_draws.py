"""Is what the page says of the latest draws what was counted?"""

from benchmarks.tests.validation.test_held_out import PAGE, as_the_page_says, of_all


def test_what_is_said_of_the_draw_after_workgroups_queue_was_counted():
    found = as_the_page_says("twenty-third")
    first = [one for one in found if one.kernel == "aiter blockscale"]
    _, _, _, tool, (*_, grouped) = of_all([one for one in found if one.kernel == "torchao fp8_mm"])
    assert f"has {tool[0]} of {tool[1]} pairs there and loses nothing (`group_m(size=8)` {grouped})" in PAGE
    _, _, _, tool, (chosen, launched, _) = of_all([*first, *(one for one in found if one.kernel == "aiter a8w8")])
    assert f"have {tool[0]} of {tool[1]} pairs and lose {chosen} % (launch order {launched})" in PAGE
    over = {one: one.predicted_us / one.measured_us for one in found}
    long, others = sorted(over[one] for one in first), sorted(over[one] for one in found if one not in first)
    assert f"first is predicted at {long[0]:.2f} to {long[-1]:.2f} of its time" in PAGE
    assert f"Times of all others are {others[0]:.2f} to {others[-1]:.2f} of the measured ones" in PAGE
    less = [1 + one.read_error for one in found if one.read_error < -0.2]
    assert len(less) == 4 and f"at {min(less):.2f} to {max(less):.2f} of what is counted from memory" in PAGE


def test_what_is_said_of_the_draw_after_code_is_timed_once_was_counted():
    found = as_the_page_says("twenty-fourth")
    new = [one for one in found if one.kernel in ("aiter gated", "aiter attention")]
    _, _, (right, every), tool, (chosen, launched, _) = of_all(new)
    assert (
        f"have {right} of {every} by time, {tool[0]} by the tool, and lose {chosen} % (launch order {launched})" in PAGE
    )
    over = {one: one.predicted_us / one.measured_us for one in found}

    def of(*kernels):
        times = sorted(ratio for one, ratio in over.items() if one.kernel in kernels)
        return f"{times[0]:.2f} to {times[-1]:.2f}"

    said = f"aiter's fp8 GEMM with scales by block is predicted at {of('aiter blockscale')} of its time"
    assert f"{said}, torchao's at {of('torchao fp8_mm')}, the transpose at {of('transpose')}" in PAGE
    assert f"aiter's attention at {of('aiter attention')}" in PAGE
    named = ("aiter attention", "transpose")
    others = of(*{one.kernel for one in found if one.kernel not in named})
    assert f"Times of all others are {others} of the measured ones there" in PAGE
