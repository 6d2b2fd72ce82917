"""Texts of candidates that want to crash, to hang, to print or to run something."""

import sys
import time
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from swizzle_sim.language import Swizzle, family, vm
from swizzle_sim.language.emit import emit_text
from swizzle_sim.language.grid import Grid
from swizzle_sim.language.verdict import TESTED, Budget
from swizzle_sim.testing import settle
from swizzle_sim.testing.candidate import TextCandidate
from tests.attack.conftest import attack
from xcd_model.errors import LanguageError

NESTED_MIN = "a"
for _ in range(30):
    NESTED_MIN = f"min({NESTED_MIN}{', 1' * 63})"

DEEP = {
    "a chain of 500 comparisons": "pid = 1 if " + " < ".join(["pid"] * 500) + " else 0",
    "or of 900 names": "if " + " or ".join(["pid"] * 900) + ":\n    pid = 1",
    "and of 900 names": "pid = tl.where(" + " and ".join(["M"] * 900) + ", pid, pid)",
    "30 nested minima of 64": f"pid = {NESTED_MIN}",
}
LONG = {
    "newlines and a bracket": "\n" * 32_000 + "(",
    "lines that end in an operator": "a +\n" * 16_000 + "(",
    "operators and blanks": ("+" + " " * 40) * 1_500 + "(",
    "a long comment and 20 swaps": "#a_new" + "_" * 50_000 + "\n" + "a, b = b, a\n" * 20 + "pid = a + b",
    "underscores in names": "\n".join(f"a_new{'_' * k} = {k}" for k in range(90)) + "\na, b = b, a\npid = a + b",
    "600 names at once": ", ".join(f"a{i}" for i in range(600)) + " = " + ", ".join(f"a{i + 1}" for i in range(600)),
    "brackets": "pid = " + "(" * 60_000,
    "lambdas": "pid = " + "lambda x: (" * 90,
    "calls with generators": "pid = " + "f(a for " * 180,
    "tildes": "pid = " + "~" * 60_000,
    "ones": "pid = " + "1+" * 32_000 + "1",
    "semicolons": "a=1;" * 16_000,
    "elifs": "if a: pass\n" + "elif b: pass\n" * 5_000,
    "digits": "pid = 0x" + "f" * 60_000,
    "carriage returns": "\r" * 65_000 + "(",
    "comments": "#\n" * 32_000,
}


@pytest.mark.parametrize("name", DEEP)
def test_a_deep_text_is_refused_by_its_depth(name):
    with pytest.raises(LanguageError) as caught:
        Swizzle.parse(DEEP[name])
    assert caught.value.code == "limit"


def test_what_is_read_is_never_deeper_than_python_can_walk():
    text = "pid = 1 if " + " < ".join(["pid"] * 90) + " else " + "+".join(["1"] * 90)
    swizzle = Swizzle.parse(text)
    assert not swizzle.verify(Grid((8,)), 8).bijective
    assert Swizzle.parse(emit_text(swizzle.form)).form == swizzle.form


@pytest.mark.parametrize("name", LONG)
def test_a_long_text_is_read_or_refused_in_linear_time(name):
    """Twenty times what the slowest needs here; two of these took 18.8 and 86.9 s while a step was quadratic."""
    began = time.process_time()
    try:
        Swizzle.parse(LONG[name])
    except LanguageError as error:
        assert len(str(error)) < 1000
    assert time.process_time() - began < 8


def test_wrapped_formulas_are_read_over_more_than_one_line():
    wrapped = Swizzle.parse("pid = pid +\n  1 *\n  2 -\n  2\n")
    assert wrapped.form == Swizzle.parse("pid = pid + 1 * 2 - 2").form


@pytest.mark.parametrize("annotation", ["print('x')", "[1]", "open", "(yield)", "tl.evil", "'int'"])
def test_annotations_are_those_of_the_list(annotation):
    with pytest.raises(LanguageError, match="annotation"):
        Swizzle.parse(f"x: {annotation} = 3\npid = x")
    assert Swizzle.parse("x: tl.constexpr = 3\npid = x").form.results == ("pid",)


def test_a_text_prints_no_warning_of_python(capfd):
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        for text in ("pid = '\\d'", "pid = 1if pid else 2", "pid = 0x1for x in y"):
            with pytest.raises(LanguageError):
                Swizzle.parse(f"{text}\nopen('x')")
    assert capfd.readouterr() == ("", "")


WORDS = (
    "pid pid_m pid_n M num_xcds num_pids a b a_new tl. tl.cdiv( tl.where( min( abs( divmod( range( int( ( ) [ ] { } : "
    ", = == < <= + - * // % << >> & | ^ ~ / ** @ -> := . ; 0 1 8 -1 2147483648 0x7f 1e9 '\\d' \"\"\" # \\ f'{ lambda "
    "if else elif for in while not and or is def class import return yield await async with try del global "
    "__import__( exec( eval( open( os.system( __class__ \0 \x1b[31m \u202e \ud800 \ufeff é \f \t \r"
)
words = st.sampled_from(WORDS.split(" "))
text = st.lists(st.one_of(words, st.sampled_from(["\n", "\n    ", " ", "  "])), max_size=60).map(" ".join)
seeds = st.sampled_from(["group_m(size=4)", "column", "chunked(chunk=4)", "morton", "group_n(size=2)"]).map(family)


@st.composite
def broken(draw):
    """Text of a family with pieces exchanged."""
    found = draw(seeds)
    for _ in range(draw(st.integers(1, 4))):
        at, length = draw(st.integers(0, len(found))), draw(st.integers(0, 12))
        found = found[:at] + draw(text.map(lambda t: t[:20])) + found[at + length :]
    return found


@pytest.fixture(scope="module")
def heard():
    """What Python was asked to do by its audit hook; a hook stays, so it only notes."""
    events = []
    wanted = ("exec", "import", "open", "os.system", "subprocess.Popen", "socket.connect", "os.remove", "os.mkdir")

    def note(event, args):
        # a syntax error makes CPython look for a file of the text's name, which is in no folder
        if event in wanted and not (event == "open" and args[0] == "<unknown>"):
            events.append((event, str(args)[:80]))

    sys.addaudithook(note)
    Swizzle.parse("pid = pid").verify(Grid((24,), (4, 6)), 8)  # what loads at the first use has loaded
    return events


@attack(400)
@given(st.one_of(text, broken()))
def test_nothing_runs_and_only_bijections_pass(heard, candidate):
    before = len(heard)
    try:
        swizzle = Swizzle.parse(candidate)
        grid = Grid((24,), (4, 6))
        verdict = swizzle.verify(grid, 8, {"M": 24})
        if verdict.bijective:
            order = swizzle.permutation(grid, 8, {"M": 24})
            assert np.array_equal(np.sort(order), np.arange(24))
    except LanguageError as error:
        assert not {c for c in str(error) if not c.isprintable()} - {"\n", "\t"}
    assert heard[before:] == []


def test_one_budget_spans_reading_and_every_launch(monkeypatch):
    text = "a = 0\nfor i in range(40):\n  for j in range(40):\n    a = a + i * j % 7\npid = pid + a - a"
    grid, steps = Grid((64,)), 0
    true = vm.run

    def counted(*given):
        nonlocal steps
        found = true(*given)
        steps += found.steps
        return found

    monkeypatch.setattr(vm, "run", counted)
    for most in (2_000_000, 5_000_000):
        monkeypatch.setattr("swizzle_sim.language.verdict.MAX_STEPS", most)
        steps = 0
        swizzle = Swizzle.parse(text)
        verdict = swizzle.verify(grid, 8)
        assert verdict.bijective and not verdict.complete and steps <= swizzle.budget(grid).left < most
    monkeypatch.setattr(
        "swizzle_sim.language.verdict.MAX_STEPS", 20_000
    )  # what reading takes leaves too little for one launch
    with pytest.raises(LanguageError) as caught:
        Swizzle.parse(text).verify(Grid((8,)), 8)
    assert caught.value.code == "limit"


def test_launches_that_look_for_a_counterexample_share_a_budget(monkeypatch):
    text = "a = 0\nfor i in range(40):\n  for j in range(40):\n    a = a + i * j % 7\npid = pid + a - a"
    candidate = TextCandidate.of(Swizzle.parse(text))
    budget = Budget(1_000_000)
    assert candidate.counterexample(Grid((64,)), 8, {}, budget) is None
    with pytest.raises(LanguageError) as caught:
        candidate.counterexample(Grid((640,)), 8, {}, budget)
    assert caught.value.code == "limit" and budget.left == 0
    grid = Grid((64,))
    verdict = Swizzle.parse(text).verify(grid, 8, lattice=[(Grid((8,)), None)])
    monkeypatch.setattr(settle, "_found", lambda *given, **more: None)
    monkeypatch.setattr(settle, "CHECK_STEPS", 3_000_000)
    more = settle.settle_verdict(verdict, Swizzle.parse(text), grid, 8)
    assert more.bijective and more.status == TESTED and verdict.tested < more.tested < 100
