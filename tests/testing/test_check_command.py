"""Does ``swizzle-sim check`` take many files, say what each is, and write JUnit XML that is well formed?"""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from swizzle_sim.cli.app import app
from swizzle_sim.testing.run import CheckResult, junit
from xcd_model.errors import SwizzleSimError

FILE = Path(__file__).parent / "files" / "remap_triton.py"
NAIVE = "pid = pid % num_xcds * (num_pids // num_xcds) + pid // num_xcds\n"
PYTHON = """
import math

# swizzle-check: where="num_pids % num_xcds == 0"
def naive(pid, num_pids, num_xcds):
    return pid % num_xcds * (num_pids // num_xcds) + pid // num_xcds

# swizzle-check: n=num_pids
def back(pid, n):
    return n - 1 - pid

# swizzle-check
def lost(pid):
    return pid // 2

def unmarked(pid):
    return 0
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "naive.txt").write_text(NAIVE)
    (tmp_path / "even.swizzle").write_text('# swizzle-check: where="num_pids % num_xcds == 0" xcds=4,8\n' + NAIVE)
    (tmp_path / "mine.py").write_text(PYTHON)
    (tmp_path / "notes.txt").write_text("pids are remapped = see mine.py\n")
    (tmp_path / ".hidden").mkdir()
    (tmp_path / ".hidden" / "bad.swizzle").write_text("pid = ")
    return tmp_path


def check(*words):
    return CliRunner().invoke(app, ["check", *map(str, words)])


def test_a_folder_of_all_kinds(folder):
    done = check(".", "--json")
    assert done.exit_code == 1
    found = {one["name"]: one["status"] for one in json.loads(done.stdout)["results"]}
    assert found == {
        "even.swizzle": "passed",
        "mine.py::naive": "passed",
        "mine.py::back": "passed",
        "mine.py::lost": "failed",
        "naive.txt": "failed",
    }


def test_several_files_and_what_is_said(folder):
    done = check("even.swizzle", "naive.txt", FILE)
    assert done.exit_code == 1
    lines = done.stdout.splitlines()
    assert "ok: even.swizzle: a bijection on all" in lines[0]
    assert lines[1].startswith("FAILED: naive.txt is not a bijection: pid 1 and pid 0 both compute tile 0")
    assert "grid 2, 3 XCDs" in lines[1]
    assert lines[-1] == "14 checked: 5 ok, 3 FAILED, 6 skipped"
    assert done.stderr == ""


def test_one_function_with_values(folder):
    assert check(f"{FILE}::remap_xcd").exit_code == 0
    assert check(f"{FILE}::gemm", "BLOCK_M=64", "M=64,1000", "N=1,999", "--xcds", "7").exit_code == 0
    assert check(f"{FILE}::remap_naive", "--where", "num_pids % num_xcds == 0").exit_code == 0
    assert check(f"{FILE}::remap_naive", "--grid", "64").exit_code == 1  # on three XCDs, say
    assert check(f"{FILE}::remap_naive", "--grid", "64", "--xcds", "8").exit_code == 0
    assert check("naive.txt", "--gpu", "h200").exit_code == 0  # one L2: nothing is remapped
    assert check("naive.txt", "--gpu", "mi300x").exit_code == 1
    assert check("naive.txt", "--launch", "M", "--xcds", "1").exit_code == 0


def test_at_one_grid_as_before(folder):
    done = check("naive.txt", "--grid", "1001", "--json")
    assert done.exit_code == 1
    assert json.loads(done.stdout)["verdict"]["domain"] == "num_pids % num_xcds == 0"
    both = check("naive.txt", "even.swizzle", "contiguous", "--grid", "64", "--json")
    assert [one["verdict"]["bijective"] for one in json.loads(both.stdout)["results"]] == [True] * 3
    assert check("naive.txt", "even.swizzle", "--kernel", "gemm", "M=2048", "N=1024").exit_code == 0


def test_only_what_is_marked(folder):
    (folder / "broken.py").write_text("def (")
    assert "3 checked: 2 ok, 1 FAILED" in check("--marked", "mine.py", "broken.py").stdout
    assert "nothing to check" in check("--marked", "broken.py").stdout
    done = check("--marked", FILE)
    assert "skipped" not in done.stdout
    assert "4 checked" in done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["missing.txt"], "missing.txt: cannot be read"),
        (["mine.py::nothing"], "no function nothing"),
        ([f"{FILE}::softmax"], "neither pid"),
        (["bad.txt"], "swizzle-check: 'grids'"),
        (["raises.py"], "ZeroDivisionError"),
        (["broken.py"], "no Python"),
        (["naive.txt", "K=3"], "K"),
        (["naive.txt", "--where", "num_pids %"], "not Python"),
    ],
    ids=str,
)
def test_what_cannot_be_read_is_an_error(folder, words, said):
    (folder / "bad.txt").write_text("# swizzle-check: grids\n" + NAIVE)
    (folder / "raises.py").write_text("1 // 0\n# swizzle-check\ndef f(pid):\n    return pid\n")
    (folder / "broken.py").write_text("def (")
    done = check(*words, "--junit", "out.xml")
    assert done.exit_code == 2
    assert said in done.stderr
    assert ElementTree.parse("out.xml").getroot().get("errors") == "1"


@pytest.mark.parametrize("words", [["M=4"], ["mine.py", "M"], ["naive.txt", "M=1", "M=2"], ["contiguous"]], ids=str)
def test_misuse(folder, words):
    done = check(*words)
    assert done.exit_code != 0
    assert isinstance(done.exception, SwizzleSimError | SystemExit)


def test_junit_is_well_formed(folder):
    check("even.swizzle", "naive.txt", FILE, "missing.txt", "--junit", "reports/out.xml")
    suites = ElementTree.parse("reports/out.xml").getroot()
    assert suites.tag == "testsuites"
    (suite,) = suites
    assert suite.tag == "testsuite"
    cases = list(suite)
    assert {case.tag for case in cases} == {"testcase"}
    for key, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        told = suite.findall(f"testcase/{tag}")
        assert int(suite.get(key)) == int(suites.get(key)) == len(told) > 0
        assert all(one.get("message") and one.text.startswith(one.get("message")) for one in told)
    assert int(suite.get("tests")) == len(cases) == 15
    for case in cases:
        assert case.get("name")
        assert case.get("classname") == case.get("file")
        assert float(case.get("time")) >= 0
        assert len(case) <= 1
    assert float(suite.get("time")) == pytest.approx(sum(float(case.get("time")) for case in cases), abs=0.01)
    assert suite.find("testcase/failure").get("type") == "collision"


def test_junit_holds_any_text():
    hostile = "a<b>&\"'\x00\x1b[31m\ud800 ]]> \N{SNOWMAN}"
    document = junit([CheckResult(hostile, hostile, "failed", hostile), CheckResult("f", "n", "passed", "")])
    case = ElementTree.fromstring(document).find("testsuite/testcase")
    assert "a<b>&\"'\N{REPLACEMENT CHARACTER}" in case.get("name")
    assert case.find("failure").text.endswith("]]> \N{SNOWMAN}")
    at_a_loss = junit([CheckResult("", "x", "passed", "first\nsecond")])
    assert ElementTree.fromstring(at_a_loss).get("tests") == "1"


def test_a_junit_file_that_cannot_be_written_is_said(folder):
    (folder / "file").write_text("")
    done = check("even.swizzle", "--junit", "file/out.xml")
    assert isinstance(done.exception, SwizzleSimError)
    assert "--junit" in str(done.exception)
