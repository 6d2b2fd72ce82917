"""Is what is proved true, and does the checker of certificates refuse what is not one?"""

import copy
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from swizzle_sim.cli.app import app
from swizzle_sim.language import family, parse_form
from swizzle_sim.language.parse import parse_condition
from swizzle_sim.proof import certificates, checker, prove
from swizzle_sim.proof.checker import Refused, check
from swizzle_sim.proof.farkas import find
from swizzle_sim.proof.pieces import cuts, same_for_all
from swizzle_sim.proof.polynomial import poly, variable
from swizzle_sim.proof.samples import Samples
from swizzle_sim.testing.grids_to_try import kind_of

NAIVE = "pid = pid % num_xcds * (num_pids // num_xcds) + pid // num_xcds"
OLDER = """
per = 8 * num_pid_n
first = pid // per * 8
size = min(num_pid_m - first, 8)
pid_m = first + pid % size
pid_n = pid % per // size
"""
STANDARD = """
q = num_pids // 8
r = num_pids % 8
xcd = pid % 8
base = xcd * (q + 1) if xcd < r else r * (q + 1) + (xcd - r) * q
pid = base + pid // 8
"""
POWERS = "num_pid_m & (num_pid_m - 1) == 0 and num_pid_n & (num_pid_n - 1) == 0"
SQUARE = "num_pid_m == num_pid_n and num_pids & (num_pids - 1) == 0"
MORTON = """
pid_m = 0
pid_n = 0
for i in range(15):
    pid_n = pid_n | (pid >> 2 * i & 1) << i
    pid_m = pid_m | (pid >> 2 * i + 1 & 1) << i
"""
HILBERT = """
t, x, y = pid, 0, 0
for i in range(15):
    s = 1 << i
    if s < num_pid_n:
        rx = 1 & t // 2
        ry = 1 & (t ^ rx)
        if ry == 0:
            if rx == 1:
                x, y = s - 1 - x, s - 1 - y
            x, y = y, x
        x, y, t = x + s * rx, y + s * ry, t // 4
pid_m, pid_n = y, x
"""
X, Q, R, A = map(variable, "XQRA")


def proved(text, where="", **options):
    form = parse_form(text)
    return prove(form, kind_of(form), where=parse_condition(where) if where else None, **options)


FAMILIES = ("identity", "contiguous", "chunked(chunk=8)", "column", "snake", "group_m(size=8)", "longest_first")


@pytest.mark.parametrize(
    ("text", "most"),
    [
        *((family(spec), 2**31 - 1) for spec in (*FAMILIES, "panel_snake")),
        (family("row_bands"), 2**30 - 1),  # a sum on the way reaches twice the grid
        ("twice = pid + num_pids\npid = twice - num_pids", 2**30 - 1),
    ],
)
def test_texts_are_proved_for_every_grid_up_to_a_size(text, most):
    found = proved(text)
    assert found.holds, found.why
    assert (found.max_workgroups, found.max_xcds) == (most, 1024)
    assert "steps" in proved(family("contiguous"), steps=3).why


def test_a_size_with_a_value_is_as_a_literal():
    text = "span = {0} * {0} * num_xcds\npid = num_pids - 1 - pid if pid + span < 0 else pid"
    by_size = proved(text.format("GROUP"), sizes={"GROUP": 64})
    assert by_size.holds, by_size.why
    assert by_size.max_workgroups * 64 <= 2**31
    assert by_size.max_xcds * 64 <= by_size.max_workgroups
    assert proved(text.format("64"), sizes={}).max_workgroups == by_size.max_workgroups


DEALT = """
rows = num_pid_m
cols = num_pid_n
total = {total}
per = cdiv(total, 8)
tall = 8 if total % 8 == 0 else total % 8
xcd = pid % 8
pid = xcd * per + pid // 8 if xcd < tall else tall * per + (xcd - tall) * (per - 1) + pid // 8
first = pid // (4 * cols) * 4
size = min(rows - first, 4)
pid_m = first + pid % (4 * cols) % size
pid_n = pid % (4 * cols) // size
"""


def test_a_piece_that_reads_the_product_of_the_sides_alone_is_proved_on_one_axis():
    found = proved(DEALT.format(total="cols * rows"))
    assert found.holds, found.why
    assert not proved(DEALT.format(total="cols * cols")).holds


@pytest.mark.parametrize(
    "text",
    [
        "a = num_pid_m\na = 2\npid = num_pid_n * a - 1 - pid",
        "num_pid_m = num_pid_n\npid = num_pid_m * num_pid_n - 1 - pid",
        "num_pids = 8\npid = num_pid_m * num_pid_n * 0 + num_pids - 1 - pid",
        "if pid > 3:\n    a = num_pid_m\nelse:\n    a = num_pid_n\npid = a * num_pid_n - 1 - pid",
    ],
)
def test_a_side_that_is_not_the_launchs_own_is_not_taken_for_it(text):
    tail = "\npid_m = pid // num_pid_n\npid_n = pid % num_pid_n"
    assert not proved(text).holds
    assert not proved(text + tail).holds


@pytest.mark.packages
@pytest.mark.parametrize("spec", ["panel_snake", "column_panels", "row_panels", "blocks", "boxes"])
def test_panels_blocks_and_boxes_are_proved(spec):
    found = proved(family(spec))
    assert found.holds, found.why


def test_samples_only_ever_deny():
    drawn = Samples(3)
    drawn.give("X", np.array([1.0, 2.0, 3.0]))
    assert drawn.below_zero(X - 2) and not drawn.below_zero(X - 1)
    drawn.keep(X - 2)
    assert drawn.count == 2 and not drawn.below_zero(X - 2)
    assert not Samples().below_zero(poly(-1))  # no sample, no answer
    drawn = Samples(1)
    drawn.give("X", np.array([2.0**40]))
    drawn.give("Q", np.array([2.0**40]))
    assert not drawn.below_zero(X * X - Q * Q - 1)  # lost in rounding


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("pid = num_pids - 1 - pid", ""),
        ("pid = pid ^ 1", "num_pids % 2 == 0"),
        ("if pid < num_pids // 8 * 8: pid = pid ^ 5", ""),
        (NAIVE, "num_pids % num_xcds == 0"),
        ("pid_m, pid_n = pid_n, pid_m", "num_pid_m == num_pid_n"),
        ("if num_pid_y % 8 == 0: y = y % 8 * (num_pid_y // 8) + y // 8", ""),
        (OLDER, ""),
        (STANDARD, ""),
        (
            "q = pid // num_pid_m\nb = q % 2\npid_m = b * (num_pid_m - 1) - (2 * b - 1) * (pid % num_pid_m)\npid_n = q",
            "",
        ),
        ("total = num_pids\npid = total - 1 - pid\npid_m = pid // num_pid_n\npid_n = pid % num_pid_n", ""),
        (MORTON, SQUARE),
        (HILBERT, SQUARE),
        ("pid = pid ^ (pid >> 1)", "num_pids & (num_pids - 1) == 0"),
        ("pid_m = pid // num_pid_n\npid_n = pid % num_pid_n ^ pid_m & num_pid_n - 1", POWERS),
    ],
)
def test_texts_are_proved_where_they_hold(text, where):
    assert proved(text, where).holds


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("q = pid // num_pid_m\nb = q % 2\npid_m = b * num_pid_m - (2 * b - 1) * (pid % num_pid_m)\npid_n = q", ""),
        (NAIVE, ""),
        (NAIVE, "num_pids >= num_xcds"),
        ("pid = pid ^ 1", ""),
        ("pid = pid // 2", ""),
        ("pid = pid + 1", ""),
        ("pid = pid // (pid - pid)", ""),  # divides by zero
        ("pid = (pid - 1) // 1 + 1", ""),  # C and Python differ at pid 0
        ("pid = pid + num_pids * num_pids - num_pids * num_pids", ""),  # leaves 32 bits
        ("for i in range(num_pids): pid = pid", ""),
        (MORTON, POWERS),
        (MORTON.replace("15", "7"), SQUARE),  # wrong above 16384 tiles
        (HILBERT.replace("s - 1 - x", "s - x"), SQUARE),
        (HILBERT.replace("x, y = y, x", "x, y = y, y"), SQUARE),
        ("pid = pid ^ (pid >> 1)", "num_pids % 2 == 0"),
        ("pid = pid * num_pids // num_pids", "num_pids & (num_pids - 1) == 0"),  # leaves 32 bits
        ("group = min(32, num_pid_m)\nper = group * num_pid_n\n"
         "pid_m = pid // per * group + pid % per % group\npid_n = pid % per // group", ""),
    ],
)  # fmt: skip
def test_what_is_false_somewhere_is_not_proved(text, where):
    found = proved(text, where)
    assert not found.holds
    assert found.why


def test_a_contradiction_is_found_only_where_there_is_one():
    assert find([X - Q - 1, X, Q * X - R, R - X * X, A], [])  # Q < X, R <= Q X, R >= X X
    assert find([X - 1, Q - X], []) is None


def test_a_text_is_cut_where_one_value_goes_on():
    form = parse_form(family("contiguous+group_m(size=4)"))
    (k, name), *_ = cuts(form.body, form.results, 0)
    assert name == "pid" and k == 2
    assert same_for_all(parse_form("a = num_pids // 2\nb = pid + a\nc = a * 2\npid = b + c").body) == parse_form(
        "a = num_pids // 2\nc = a * 2\npid = a + c").body[:2]  # fmt: skip


def test_a_cut_keeps_what_a_mixed_branch_has_set():
    text = "if num_pids > 5:\n    g = 0\n    pid = num_pids - 1 - pid\nelse:\n    g = 8\npid = pid * g"
    form = parse_form(text)
    assert not list(cuts(form.body, form.results, 0))
    assert not proved(text).holds


@pytest.mark.parametrize(
    "text",
    [
        "x = pid\n" + "x = x * x\n" * 40 + "pid = pid",
        "\n".join("  " * k + f"for i{k} in range(60):" for k in range(5)) + " pid = pid + 0",
        "pid = (pid * 8 + pid % 8 - 20 * (pid % 2)) // 8",
    ],
)
def test_what_is_too_much_or_below_zero_ends_at_once(text):
    assert not proved(text).holds


# ---- Does the checker of certificates accept what is proved, stand alone, and refuse what says more?
ALONE = Path(checker.__file__)


@pytest.fixture(scope="module")
def grouped():
    form = parse_form(family("contiguous+group_m(size=8)"))
    with certificates() as found:
        assert prove(form, kind_of(form)).holds
    return json.loads(json.dumps(found[-1]))


def test_what_it_accepts_names_launches_and_names(grouped):
    said = check(grouped)
    assert said == "(pid_m, pid_n) of tiles: a bijection of up to 2147483647 workgroups, up to 1024 XCDs"


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("kind", "line", "launch"),
        ("max_workgroups", 2**31, "32 bits"),
        ("max_xcds", 1025, "XCDs"),
        ("num_xcds", 8, ""),
        ("text", "pid = pid // 2\n", "out of order"),
        ("pieces", [], "sides that may be no powers of two"),
        ("polynomials", [], "no certificate"),
        ("sizes", {"pid": 3}, "name of a coordinate"),
    ],
)
def test_it_refuses_what_is_not_shown(grouped, key, value, why):
    with pytest.raises(Refused, match=why or None):
        check({**grouped, key: value})


@pytest.mark.parametrize("of", ["paths", "pairs"])
def test_it_misses_a_path_and_a_pair(grouped, of):
    for piece in range(len(grouped["pieces"])):
        for k in range(len(grouped["pieces"][piece][of])):
            without = copy.deepcopy(grouped)
            del without["pieces"][piece][of][k]
            with pytest.raises(Refused):
                check(without)


def test_a_users_check_is_checked_without_the_rest(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("even.swizzle").write_text("# swizzle-check: where='num_pids % 2 == 0'\npid = pid ^ 1\n")
    done = CliRunner().invoke(app, ["check", "even.swizzle", "--certificate", "even.json"])
    assert done.exit_code == 0
    alone = [sys.executable, "-I", "-S", str(ALONE)]
    found = subprocess.run([*alone, "even.json"], capture_output=True, text=True, check=True)
    assert found.stdout.startswith("accepted: (pid) of line: a bijection of up to 2147483647 workgroups")
    assert "where num_pids % 2 == 0\npid = pid ^ 1\n" in found.stdout
    Path("even.json").write_text(Path("even.json").read_text().replace("% 2 == 0", "% 3 == 0"))
    for words in (["even.json"], ["none.json"], []):
        assert subprocess.run([*alone, *words], capture_output=True, check=False).returncode == 1
