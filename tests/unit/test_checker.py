"""Does the checker of certificates accept what is proved, stand alone, and refuse what says more?"""

import copy
import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from swizzle_sim.cli.app import app
from swizzle_sim.language import family, parse_form
from swizzle_sim.proof import certificates, checker, prove
from swizzle_sim.proof.checker import Refused, check
from swizzle_sim.testing.grids_to_try import kind_of

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
