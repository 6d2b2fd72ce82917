"""Does the strategy of the how-to run as it stands there, go on, spend what it may, and say what is wrong?"""

import re
from pathlib import Path

import pytest

from swizzle_sim.capture.kernel_file import forget_files
from swizzle_sim.search.history import History

PAGE = (Path(__file__).parents[2] / "docs" / "howto" / "search-strategy.md").read_text(encoding="utf-8")
CLIMB = re.search(r"```python title=\"climb.py\"\n(.*?)```", PAGE, re.DOTALL)[1]
SIZES = ("M=512", "N=512", "K=64", "BLOCK_M=64", "BLOCK_N=64")
WORDS = ("optimize", "gemm", *SIZES, "--replay", "lockstep", "--no-report", "--no-compile", "--no-uncertainty")


@pytest.fixture(autouse=True)
def climb(tmp_path):
    (tmp_path / "climb.py").write_text(CLIMB)


def names(folder):
    with History(folder) as history:
        return [one.name for one in history]


def test_the_strategy_of_the_how_to(typed, tmp_path):
    assert len([line for line in CLIMB.splitlines() if line.strip()]) <= 20
    assert "--proposer climb.py:climb --evaluations 40" in PAGE
    found = typed(*WORDS, "--proposer", "climb.py:climb", "--out", "run", "--json").json
    tried = names(tmp_path / "run")
    assert tried[:2] == ["identity", "contiguous+group_m(size=8)"] and len(tried) > 5
    assert found["kind"] == "simulated" and found["scored"] > 3
    assert found["best"][0]["score"]["l2_hit_rate"] == max(one["score"]["l2_hit_rate"] for one in found["best"])
    shown = typed("report", "run", "--json")
    assert shown.code == 0


def test_it_spends_what_it_may_and_goes_on(typed, tmp_path):
    whole = typed(*WORDS, "--proposer", "climb.py:climb", "--out", "whole", "-v")
    assert whole.code == 0 and "candidates tried: " in whole.out
    spent = typed(*WORDS, "--proposer", "climb.py:climb", "--out", "cut", "--evaluations", "2", "--json").json
    cut = names(tmp_path / "cut")
    assert spent["scored"] == 3 and cut == names(tmp_path / "whole")[: len(cut)] != names(tmp_path / "whole")
    assert typed("optimize", "--resume", "cut", "--evaluations", "400", "--no-compile", "--no-uncertainty").code == 0
    assert names(tmp_path / "cut") == names(tmp_path / "whole")
    (tmp_path / "climb.py").write_text(CLIMB.replace("8, 8", "4, 8"))
    forget_files()
    assert (
        "attempt 1 is not contiguous+group_m(size=4), it was contiguous+group_m(size=8)"
        in typed("optimize", "--resume", "cut").err
    )


YIELDS = "climb.py:2: a strategy yields texts or candidates, or lists of them, not "


@pytest.mark.parametrize(
    ("text", "words", "told"),
    [
        ("def climb(judge): return 1", (), "climb is no generator function"),
        ("def other(judge): yield 'row'", (), "climb.py has no climb; the file has other"),
        ("def climb(): yield 'row'", (), "climb.py:climb: a strategy takes one argument, the judge"),
        ("1 / 0", (), "climb.py:1"),
        ("def climb(judge):\n    yield 1 / 0", (), "climb.py:2: "),
        ("def climb(judge):\n    yield 5", (), YIELDS + "5"),
        ("def climb(judge):\n    yield", (), YIELDS + "None"),
        ("def climb(judge):\n    yield ['row', None]", (), "climb.py:2: a strategy yields texts"),
        (CLIMB, ("--model", "openai/x"), "--model belongs to --proposer llm or two-stage"),
        (CLIMB, ("--template", "row"), "--template belongs to --proposer search"),
    ],
)
def test_what_is_wrong_is_said(typed, tmp_path, text, words, told):
    forget_files()
    (tmp_path / "climb.py").write_text(text)
    answer = typed(*WORDS, "--proposer", "climb.py:climb", *words)
    assert answer.code == 2 and told in answer.err
    assert "no such file" in typed(*WORDS, "--proposer", "none.py:climb").err


def test_one_that_has_nothing_new_ends(typed, tmp_path, monkeypatch):
    monkeypatch.setattr("swizzle_sim.search.proposers.IDLE", 5)
    (tmp_path / "climb.py").write_text("def climb(judge):\n    while True:\n        yield 'row'\n")
    answer = typed(*WORDS, "--proposer", "climb.py:climb", "--out", "run")
    assert answer.code == 0 and "stopped: 5 candidates in a row" in answer.err and len(names(tmp_path / "run")) == 6


@pytest.mark.parametrize("name", ["climb.py", "climb.py:"])
def test_a_file_alone_is_asked_for_its_function(typed, name):
    answer, told = typed(*WORDS, "--proposer", name, "--evaluations", "9"), "name the function after a colon"
    assert answer.code == 2 and f"climb.py: {told}, climb.py:FUNCTION; the file has climb" in answer.err


def test_empty_lists_end_by_number_or_by_the_clock(typed, tmp_path, monkeypatch):
    forget_files()
    (tmp_path / "climb.py").write_text("def climb(judge):\n    while True:\n        yield []\n")
    answer = typed(*WORDS, "--proposer", "climb.py:climb", "--out", "run")
    assert answer.code == 0 and "stopped: 500 candidates in a row" in answer.err
    monkeypatch.setattr("swizzle_sim.search.proposers.IDLE", 10**9)
    answer = typed(*WORDS, "--proposer", "climb.py:climb", "--out", "late", "--max-minutes", "0.01")
    assert answer.code == 0 and names(tmp_path / "late") == ["identity"]


def test_texts_that_are_no_order_are_told_why(typed, tmp_path):
    forget_files()
    (tmp_path / "climb.py").write_text(
        "def climb(judge):\n"
        "    found = yield ['group_m(size=0)', 'contigous+row', 'group_m(sice=3)']\n"
        "    codes = [one.verdict['code'] for one in found]\n"
        "    assert codes == ['parse-parameter', 'parse-name', 'parse-name'], codes\n"
        "    assert 'did you mean contiguous' in found[1].critique and 'size' in found[2].critique\n"
        "    one = yield 'pid = pid % 7'\n"
        "    assert one.score is None and one.verdict['code'] == 'grid-collision'\n"
        "    assert 'computed by nobody' in one.critique\n"
        "    both = yield ['pid = num_pids - 1 - pid', 'reverse']\n"
        "    assert [o.verdict['code'] for o in both] == ['scored', 'duplicate']\n"
        "    assert judge.cost(both[0]) == judge.cost(both[1]) < judge.cost(one)\n"
    )
    answer = typed(*WORDS, "--proposer", "climb.py:climb", "--out", "run")
    assert answer.code == 0, answer.err
    assert [one.removeprefix("climb ").isdigit() for one in names(tmp_path / "run")[4:]] == [True, True, False]
