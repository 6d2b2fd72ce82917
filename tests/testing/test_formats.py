"""Are JUnit XML, SARIF and annotations what CI services read, whatever the files are called?"""

import json
from xml.etree import ElementTree

import pytest
from pydantic import ValidationError
from pydantic_sarif.model import StaticAnalysisResultsFormatSarifVersion210JsonSchema as Sarif
from typer.testing import CliRunner

from swizzle_sim.cli.app import app
from swizzle_sim.testing.codes import RULES
from swizzle_sim.testing.formats import github_annotations, junit, sarif
from swizzle_sim.testing.run import CheckResult
from tests.capture.same_trace import needs_triton
from xcd_model.errors import SwizzleSimError

HOSTILE = "a<b>&\"'\x00\x1b[31m\ud800 ]]> \N{SNOWMAN}"
NAIVE = "pid = pid % num_xcds * (num_pids // num_xcds) + pid // num_xcds\n"
KERNELS = """
import triton

@triton.jit
def softmax(pid, strange):
    return pid % 8 * strange + pid // 8

# swizzle-check
def lost(pid):
    return pid // 2
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    (tmp_path / "naive.txt").write_text(NAIVE)
    (tmp_path / "even.swizzle").write_text("pid = num_pids - 1 - pid\n")
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "kernels.py").write_text(KERNELS)
    return tmp_path


def check(*words):
    return CliRunner().invoke(app, ["check", *map(str, words)])


ALL = ("even.swizzle", "naive.txt", "src", "missing.txt")


def test_junit_is_well_formed(folder):
    check(*ALL, "--junit", "reports/out.xml")
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
    assert int(suite.get("tests")) == len(cases) == 5
    for case in cases:
        assert case.get("name")
        assert case.get("classname") == case.get("file")
        assert float(case.get("time")) >= 0
        assert len(case) <= 1
    assert float(suite.get("time")) == pytest.approx(sum(float(case.get("time")) for case in cases), abs=0.01)
    assert suite.find("testcase/failure").get("type") == "SW101"


def test_junit_holds_any_text():
    document = junit([CheckResult(HOSTILE, HOSTILE, "failed", HOSTILE), CheckResult("f", "n", "passed", "")])
    case = ElementTree.fromstring(document).find("testsuite/testcase")
    assert "a<b>&\"'\N{REPLACEMENT CHARACTER}" in case.get("name")
    assert case.find("failure").text.endswith("]]> \N{SNOWMAN}")
    at_a_loss = junit([CheckResult("", "x", "passed", "first\nsecond")])
    assert ElementTree.fromstring(at_a_loss).get("tests") == "1"


@needs_triton
def test_sarif_is_of_the_standard(folder):
    check(*ALL, "--sarif", "reports/out.sarif")
    text = (folder / "reports" / "out.sarif").read_bytes()
    Sarif.model_validate_json(text)
    (run,) = json.loads(text)["runs"]
    alerts = run["results"]
    assert [one["ruleId"] for one in alerts] == ["SW101", "SW201", "SW101", "SW301"]
    assert [one["level"] for one in alerts] == ["error", "note", "error", "error"]
    rules = run["tool"]["driver"]["rules"]
    assert all(rules[one["ruleIndex"]]["id"] == one["ruleId"] for one in alerts)
    place = alerts[2]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "src/kernels.py", "uriBaseId": "%SRCROOT%"}
    assert place["region"]["startLine"] == 9
    prints = [one["partialFingerprints"]["swizzleCheck/v1"] for one in alerts]
    assert len(set(prints)) == len(prints)
    (folder / "src" / "kernels.py").write_text("\n\n" + KERNELS)
    check(*ALL, "--sarif", "moved.sarif")
    moved = json.loads((folder / "moved.sarif").read_text())["runs"][0]["results"]
    assert [one["partialFingerprints"]["swizzleCheck/v1"] for one in moved] == prints


def test_what_is_not_sarif_is_told_apart(folder):
    document = json.loads(sarif([CheckResult("a.py", "a", "failed", "m")]))
    document["runs"][0]["results"][0]["severity"] = "high"
    with pytest.raises(ValidationError):
        Sarif.model_validate(document)


def test_sarif_holds_any_text(folder):
    results = [
        CheckResult(
            f"src/{HOSTILE}\n,:%.py".replace("\x00", "").replace("\ud800", "\udc80"), HOSTILE, "failed", HOSTILE
        )
    ]
    results.append(CheckResult("/elsewhere/x.py", "x", "error", "m"))
    document = sarif(results)
    Sarif.model_validate_json(document.replace(b"\\ud800", b""))
    first, second = json.loads(document)["runs"][0]["results"]
    uri = first["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert uri.startswith("src/a%3Cb%3E")
    assert uri.isascii()
    assert uri.isprintable()
    assert second["locations"][0]["physicalLocation"]["artifactLocation"] == {"uri": "file:///elsewhere/x.py"}


@needs_triton
def test_annotations_stand_at_the_line_where_github_runs_it(folder, monkeypatch):
    assert "::" not in check("naive.txt").stdout.replace("naive.txt::", "")
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    lines = [line for line in check("src").stdout.splitlines() if line.startswith("::")]
    assert lines[0].startswith("::notice file=src/kernels.py,line=5,title=SW201 kernels.py%3A%3Asoftmax::")
    assert lines[0].endswith("%0A  add: # swizzle: strange=...")
    assert lines[1].startswith("::error file=src/kernels.py,line=9,title=SW101 kernels.py%3A%3Alost::")
    assert "kernels.py::lost: NOT a bijection at grid 2, 8 XCDs: pid 1 and pid 0 both compute tile 0" in lines[1]
    done = check("src", "--json")
    json.loads(done.stdout)
    assert [line for line in done.stderr.splitlines() if line.startswith("::")] == lines


def test_a_file_name_is_no_command_and_no_line_of_its_own(folder, monkeypatch):
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    name = "a\n::stop-commands::x\n\x1b[2J,line=9:%.swizzle"
    (folder / "odd").mkdir()
    (folder / "odd" / name).write_text(NAIVE)
    (folder / "odd" / "b.swizzle").write_text("::add-mask::secret\n")  # the error quotes the line
    done = check("odd", "--junit", "out.xml", "--sarif", "out.sarif")
    assert done.exit_code == 1
    everything = done.stdout + done.stderr
    assert "\x1b" not in everything
    commands = [line for line in everything.splitlines() if line.lstrip().startswith(("::", "##["))]
    assert len(commands) == 2
    assert all(line.startswith("::error file=odd/") for line in commands)
    assert "file=odd/a%0A%3A%3Astop-commands%3A%3Ax%0A\\u{1b}[2J%2Cline=9%3A%25.swizzle,line=1," in commands[0]
    assert ElementTree.parse("out.xml").getroot().get("tests") == "2"
    Sarif.model_validate_json((folder / "out.sarif").read_bytes())


def test_what_a_baseline_has_is_suppressed():
    known = [CheckResult("a.py", "a", "failed", "m", is_known=True)]
    assert json.loads(sarif(known))["runs"][0]["results"][0]["suppressions"][0]["kind"] == "external"
    case = ElementTree.fromstring(junit(known)).find("testsuite")
    assert (case.get("failures"), case.get("skipped")) == ("0", "1")
    assert github_annotations(known) == github_annotations([CheckResult("f", "n", "passed", "")]) == []


@pytest.mark.parametrize(
    ("status", "code", "message", "rule"),
    [
        ("failed", "collision", "", "SW101"), ("failed", "overflow", "", "SW102"), ("failed", "died", "", "SW106"),
        ("skipped", "option", "f: n has no value: give one", "SW201"),
        ("skipped", "node", "f.py:3:1: neither pid: say which names hold the tile, as answer=", "SW202"),
        ("skipped", "node", "f.py:3:1: 'pid' is assigned after the first memory access in line 2", "SW205"),
        ("skipped", "loop", "f.py:3:1: the loop goes on by 2", "SW206"),
        ("skipped", "node", "returns.py:3:1: the tile depends on 'a', which is not read\n    return a", "SW210"),
        ("skipped", "node", "f.py:3:1: g returns from inside this statement", "SW208"),
        ("skipped", "node", "f.py:3:1: 'N' is assigned on some paths only: assign it before", "SW201"),
        ("skipped", "node", "f.py:3:1: more than 50 calls of this file's functions in one prologue", "SW209"),
        ("skipped", "call", "f.py:3:1: this call does not fit", "SW299"),
        ("error", "file", "f.py: cannot be read", "SW301"), ("error", "node", "", "SW399"),
    ],
)  # fmt: skip
def test_each_finding_has_a_code_that_lines_of_its_file_do_not_change(status, code, message, rule):
    assert CheckResult("f.py", "f", status, message, code=code).rule == rule
    assert [one.code for one in RULES] == sorted({one.code for one in RULES})


@pytest.mark.parametrize("option", ["--junit", "--sarif"])
def test_a_report_that_cannot_be_written_is_said(folder, option):
    (folder / "file").write_text("")
    done = check("even.swizzle", option, "file/out")
    assert isinstance(done.exception, SwizzleSimError)
    assert option in str(done.exception)
