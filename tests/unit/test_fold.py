"""Is a folded form the same order on its launch, and is what folds away gone?"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swizzle_sim.language import FAMILIES, Grid, Swizzle, family
from swizzle_sim.language.emit import emit_text
from swizzle_sim.language.fold import folded
from swizzle_sim.language.grid import bind
from swizzle_sim.language.lower import compile_form
from tests import naive_language
from tests.strategies import forms
from tests.unit import emit_cases
from xcd_model.errors import SwizzleSimError

LAUNCHES = (Grid((1,), (1, 1)), Grid((35,), (7, 5)), Grid((1024,), (256, 4)), Grid((96,), (8, 12)), Grid((8, 6)))
LAUNCHES = (*LAUNCHES, Grid((4, 4, 4)), Grid((5, 3, 4)))


def text_of(text, grid, num_xcds=8, sizes=None):
    return emit_text(folded(Swizzle.parse(text).form, grid, num_xcds, sizes or {}))


@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_keeps_its_order(name):
    swizzle = Swizzle.parse(family(name), name)
    tried = 0
    for grid in LAUNCHES:
        try:
            wanted = swizzle.permutation(grid, 8)
        except SwizzleSimError:
            continue
        tried += 1
        short = folded(swizzle.form, grid, 8, {})
        assert not {one for one in short.inputs if one.startswith("num_") or one == "NUM_XCDS"}
        again = Swizzle(swizzle.source, short, compile_form(short), name, "").permutation(grid, 8)
        assert np.array_equal(again, wanted), grid
    assert tried


@pytest.mark.parametrize("name", emit_cases.TEXTS)
def test_every_construct_keeps_its_answers(name):
    form = Swizzle.parse(emit_cases.TEXTS[name]).form
    tried = 0
    for grid in emit_cases.GRIDS:
        if emit_cases.has_grid(form, grid):
            tried += 1
            check_answers(form, grid, emit_cases.SIZES)
    assert tried


@settings(max_examples=200, deadline=None)
@given(forms(), st.sampled_from([1, 5, 24]))
def test_random_forms_keep_their_answers(form, n):
    check_answers(form, Grid((n,)), {"M": 7})


def check_answers(form, grid, sizes):
    """Compare with the literal reading of the language, for the workgroups where that has an answer."""
    short = folded(form, grid, emit_cases.NUM_XCDS, sizes)
    bound = bind(sorted({*form.inputs, *short.inputs}), grid, emit_cases.NUM_XCDS, sizes)
    known = [
        {**bound.constants, **{name: pid // d.stride % d.extent for name, d in bound.digits.items()}}
        for pid in range(grid.num_pids)
    ]
    try:
        wanted = [naive_language.results(form, dict(values)) for values in known]
    except (ArithmeticError, ValueError, MemoryError):  # the last: 7 << 2**62
        return  # a candidate that is refused on some workgroup is never emitted
    assert [naive_language.results(short, dict(values)) for values in known] == wanted


def test_what_this_launch_cannot_tell_apart_is_gone():
    even, ragged = (text_of(family("group_m(size=8)"), Grid((n * 4,), (n, 4))) for n in (256, 255))
    assert "min" not in even and "num_" not in even and "min" in ragged
    assert text_of("pid = pid + (1 if num_pids > 5 else 0) - 1", Grid((64,))) == "pass\n"
    assert "if" not in text_of("if num_xcds == 8:\n    pid = num_pids - 1 - pid", Grid((64,)))
    assert "if" in text_of("if pid < 32:\n    pid = 31 - pid", Grid((64,)))
    assert text_of("a = pid * 3\nb = a\npid = num_pids - 1 - pid", Grid((64,))) == "pid = 63 - pid\n"
    assert text_of("pid = (pid + M) % num_pids", Grid((64,)), sizes={"M": 5}) == "pid = (pid + 5) % 64\n"


def test_a_branch_folds_by_the_workgroups_that_take_it():
    text = "if pid >= 4:\n    pid = 4 + (pid // (pid // 4)) % 4 + min(pid, 3) - 3\nelse:\n    pid = pid"
    short = text_of(text, Grid((8,)))
    assert "min" not in short  # elsewhere pid is smaller than 3, and pid // 4 is zero


def test_what_a_loop_changes_is_left_alone():
    short = text_of("a = 0\nfor i in range(num_xcds):\n    a = a + i\npid = (pid + a) % num_pids", Grid((64,)))
    assert "for i in range(8)" in short and "(pid + a) % 64" in short
