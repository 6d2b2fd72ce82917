"""Does ``swizzle-sim check`` take many files, say what each is, and pass only what it checked?"""

import json
import os
from pathlib import Path
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from swizzle_sim.cli.app import app
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
    assert lines[0].startswith("even.swizzle:1: ok: even.swizzle: a bijection, proved: where num_pids % num_xcds == 0")
    assert lines[1].startswith(
        "naive.txt:1: FAILED SW101: naive.txt: proved where num_pids % num_xcds == 0; NOT a bijec"
    )
    assert "grid 2, 8 XCDs: pid 1 and pid 0 both compute tile 0" in lines[1]
    skipped = [line for line in lines if ": skipped SW201: " in line]
    assert skipped[0].startswith(f"{FILE}:110: skipped SW201: remap_triton.py::leaves_early: n has no value")
    assert skipped[0].endswith("; add: # swizzle: n=...")
    assert lines[-1] == "10 found: 6 ok, 3 FAILED, 1 skipped"
    assert "swizzle-sim:" not in done.stderr


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
    verdict = json.loads(done.stdout)["verdict"]
    assert verdict["domain"] == "num_pids % num_xcds == 0" and len(verdict["counterexample"]["pids"]) == 2
    assert check("naive.txt", "--grid", "1001", "--xcds", "7").exit_code == 0
    assert [check("contiguous", "--grid", grid).exit_code for grid in ("1", "3", "64x64", "8x16x4")] == [0] * 4
    assert "no 'num_pid_m'" in str(check("hilbert", "--grid", "8x16x4").exception)
    both = check("naive.txt", "even.swizzle", "contiguous", "--grid", "64", "--json")
    assert [one["verdict"]["bijective"] for one in json.loads(both.stdout)["results"]] == [True] * 3
    assert check("naive.txt", "even.swizzle", "--kernel", "gemm", "M=2048", "N=1024").exit_code == 0
    assert check("contiguous", "--kernel", "gemm", "M=1000", "N=777").exit_code == 0


def test_a_baseline_passes_what_is_known_and_says_what_is_gone(folder):
    (folder / "odd.py").write_text(SKIPPED)
    assert check(".", "--write-baseline", "known.txt").exit_code == 0
    kept = (folder / "known.txt").read_text()
    assert kept.splitlines()[1:] == ["SW101 mine.py::lost", "SW101 naive.txt::naive.txt", "SW201 odd.py::softmax"]
    done = check(".", "--baseline", "known.txt")
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == "6 found: 3 ok, 3 in the baseline"
    (folder / "mine.py").write_text(PYTHON.replace("def lost(pid)", "def missing(pid)"))
    done = check(".", "--baseline", "known.txt", "--json")
    assert done.exit_code == 1
    assert json.loads(done.stdout)["counts"] == {"passed": 3, "failed": 1, "error": 0, "skipped": 0, "known": 2}
    assert done.stderr == "swizzle-sim: known.txt: SW101 mine.py::lost is found no more: remove the line\n"
    assert check("even.swizzle", "--baseline", "known.txt").stderr == "", "of what was not checked nothing is known"
    (folder / "none.py").write_text("x = 1\n")
    assert check("none.py", "--baseline", "known.txt").exit_code == 0, "a commit may touch no remap"
    assert check("none.py").exit_code == 2
    counted = check(".", "--statistics").stdout
    assert counted.splitlines()[0].split()[:2] == ["2", "SW101"]
    (folder / "known.txt").write_text("naive is fine\n")
    assert "no entry" in str(check(".", "--baseline", "known.txt").exception)
    assert "--write-baseline" in str(check(".", "--baseline", "missing").exception)
    (folder / "zero").symlink_to("/dev/zero")
    assert "over 16 MiB" in str(check(".", "--baseline", "zero").exception)


KERNEL = """
import triton
import triton.language as tl

@triton.jit
def chunked(pid, num_pids, NUM_XCDS: tl.constexpr = 8, CHUNK: tl.constexpr = 64):
    local = pid // NUM_XCDS
    return local // CHUNK * NUM_XCDS * CHUNK + pid % NUM_XCDS * CHUNK + local % CHUNK

@triton.jit
def gemm(c, M, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    rows, cols = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    pid = chunked(tl.program_id(0), rows * cols)
    pid_m, pid_n = pid // cols, pid % cols
    tl.store(c + pid_m * BLOCK_M * N + pid_n * BLOCK_N, 1)
"""


def test_a_failure_is_shown_at_its_own_defaults_and_names_its_cause(folder):
    (folder / "kernel.py").write_text(KERNEL)
    lines = check("kernel.py").stdout.splitlines()
    assert lines[0].startswith(
        "kernel.py:6: FAILED SW101: kernel.py::chunked: proved where num_pids % 512 == 0 (CHUNK=64, 8 XCDs); NOT a "
        "bijection at grid 2, 8 XCDs, CHUNK=64: pid 1 computes pid = 64, outside 0..1"
    )
    assert lines[1] == "  also at grid 2, 2 XCDs, CHUNK=4: pid 1 computes pid = 4, outside 0..1"
    assert "gemm: proved where num_pids % 512 == 0; NOT a bijection through chunked, line 6, at grid 2" in lines[3]


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("log = 3 if num_pid_y >= 6 else 0\ntile = 1 << log\npid = y * num_pid_x + x\npx = pid % (num_pid_x * tile)\n"
         "py = pid // (num_pid_x * tile)\nx = px >> log\ny = (py << log) + (px & (tile - 1))", "num_pid_y % 8 == 0"),
        ("pid_m = pid_m ^ (pid_n & (num_pid_m - 1))", "num_pid_m & (num_pid_m - 1) == 0"),
        (NAIVE, "num_pids % num_xcds == 0"),
        ("pid = pid % 8 * 8 + pid // 8", "num_pids == 64"),
        ("pid = pid if pid <= 64 else 0", "num_pids <= 65"),
    ],
    ids=["literal", "power", "xcds", "count", "bound"],
)  # fmt: skip
def test_advice_is_a_condition_that_check_accepts(folder, text, advice):
    (folder / "one.swizzle").write_text(text)
    assert f"where {advice}" in check("one.swizzle").stdout
    assert check("one.swizzle", "--where", advice).exit_code == 0


@pytest.mark.parametrize(
    ("text", "status", "said"),
    [
        ("contiguous", 0, "a bijection at grid 1073741824"),
        ("pid = pid ^ 5", 0, "proved: where num_pids >= 5 and num_pids & (num_pids - 1) == 0"),
        ("pid = pid - (pid & num_pids) + (pid & num_pids)", 0, "no counter-example in a sample"),
        ("pid = pid % 134217728", 1, "pid 134217728 and pid 0 both compute tile 0"),
        ("pid = pid * 8 // 8", 1, "a value leaves the signed 32-bit range"),
        ("pid = pid + 1", 1, "pid 1073741823 computes pid = 1073741824"),
    ],
    ids=str,
)
def test_a_launch_too_large_to_try_is_proved_or_sampled(text, status, said):
    done = check(text, "--grid", 2**30)
    assert (done.exit_code, said in done.stdout) == (status, True), done.stdout
    assert "where num_pids <=" not in done.stdout, "that smaller launches are right bounds nothing"


def test_a_launch_too_large_is_refused_where_all_of_it_is_needed(folder):
    assert "at most 4194304" in check("mine.py::back", "--call", "--grid", 2**28).stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["missing.txt"], "missing.txt: cannot be read"),
        (["mine.py::nothing"], "no function nothing"),
        ([f"{FILE}::softmax"], "neither pid"),
        (["bad.txt"], "swizzle: 'grids'"),
        (["odd.py"], "--call calls it"),
        (["broken.py"], "no Python"),
        (["naive.txt", "K=3"], "K"),
        (["naive.txt", "--where", "num_pids %"], "not Python"),
    ],
    ids=str,
)
def test_what_cannot_be_read_is_an_error(folder, words, said):
    (folder / "bad.txt").write_text("# swizzle-check: grids\n" + NAIVE)
    (folder / "odd.py").write_text("# swizzle-check\ndef f(pid):\n    return {pid: pid}[pid]\n")
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


RIGHT = "# swizzle-check\ndef back(pid, num_pids):\n    return num_pids - 1 - pid\n"
SKIPPED = "import triton\n\n@triton.jit\ndef softmax(pid, strange):\n    return pid % 8 * strange + pid // 8\n"
WRONG = "# swizzle-check\ndef lost(pid):\n    return pid // 2\n"


@pytest.mark.parametrize(
    ("files", "status", "allowed"),
    [
        ({"a.py": RIGHT}, 0, 0),
        ({"a.py": RIGHT, "b.py": SKIPPED}, 2, 0),
        ({"a.py": RIGHT, "b.py": SKIPPED, "c.py": WRONG}, 1, 1),
        ({"a.py": SKIPPED}, 2, 0),
        ({"a.py": "x = 1\n"}, 2, 0),
        ({"a.py": "# swizzle-check\nx = 1\n"}, 2, 0),
        ({}, 2, 0),
        ({"a.py": RIGHT, "b.py": "def f(pid, ("}, 2, 2),
        ({"a.py": RIGHT, "b.py": "def ("}, 0, 0),  # whatever it is, no id is in it
        ({"a.py": RIGHT, "b.py": b"\xff\xfe\x00\x01"}, 2, 2),
        ({"a.py": RIGHT, "b.swizzle": b"\x7fELF\x80\x00"}, 2, 2),
        ({"a.py": WRONG, "b.py": "def f(pid, ("}, 1, 1),
        ({"a.py": "import os\nos._exit(0)\n" + RIGHT, "b.py": WRONG}, 1, 1),  # nothing of a file is run
    ],
    ids=lambda value: "+".join(value) if isinstance(value, dict) else str(value),
)
def test_what_was_not_checked_is_no_pass(tmp_path, monkeypatch, files, status, allowed):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "src"
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    done = check("src")
    assert done.exit_code == status
    assert check("src", "--allow-skips").exit_code == allowed
    if status == 2 and allowed == 0:
        assert "--allow-skips" in done.stderr  # what to do
        missing = "above the function, '# swizzle: off'" if SKIPPED in files.values() else "'# swizzle-check' above"
        assert missing in done.stderr
    if files.get("b.py") == SKIPPED:
        assert "src/b.py:4: skipped SW201: b.py::softmax" in done.stdout


def test_what_is_missing_or_may_not_be_read_is_an_error(folder, monkeypatch):
    def refusing(name, true):
        def opened(path, *words, **options):
            if Path(path).name == name:
                raise PermissionError(13, "Permission denied", str(path))
            return true(path, *words, **options)

        return opened

    (folder / "locked").mkdir()
    monkeypatch.setattr(os, "scandir", refusing("locked", os.scandir))
    monkeypatch.setattr("xcd_model.files.open", refusing("mine.py", open), raising=False)  # root may read any file
    for name, said in (("nowhere/", ""), ("nowhere.py", ""), ("locked", "locked"), ("mine.py", "mine.py: cannot be ")):
        done = check(name, "even.swizzle", "--allow-skips")
        assert done.exit_code == 2 and said in done.stderr


def test_a_file_that_prints_does_not_spoil_the_document(folder):
    (folder / "loud.py").write_text("print('hello')\n# swizzle-check\ndef f(pid):\n    print(pid)\n    return pid\n")
    done = check("loud.py", "--json", "--call")
    assert done.exit_code == 0
    assert json.loads(done.stdout)["counts"] == {"passed": 1, "failed": 0, "error": 0, "skipped": 0, "known": 0}


def test_many_files_side_by_side_are_in_order(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for k in range(15):
        (tmp_path / f"{k:02}.py").write_text(RIGHT if k % 7 else WRONG)
    done = check(tmp_path, "--jobs", "2")  # by full path: processes of an earlier test may be in another folder
    assert done.exit_code == 1
    assert done.stdout == check(tmp_path, "--jobs", "1").stdout
    lines = [line for line in done.stdout.splitlines() if " ok: " in line or " FAILED SW101: " in line]
    assert [line[len(f"{tmp_path}/") :][:5] for line in lines] == [f"{k:02}.py" for k in range(15)]


def test_a_function_is_called_on_request_in_a_process_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("table.py").write_text("ORDER = [0, 1]\n# swizzle: grids=2\ndef f(pid):\n    return ORDER[pid]\n")
    Path("dies.py").write_text("import os\nos._exit(0)\n" + RIGHT)
    Path("later.py").write_text("import os\n# swizzle-check\ndef f(pid):\n    os._exit(0)\n")
    Path("raises.py").write_text("1 // 0\n# swizzle-check\ndef f(pid):\n    return pid\n")
    Path("forges.py").write_text("print('{\"answer\": []}')\n# swizzle-check\ndef f(pid):\n    return 0\n")
    assert check("table.py").exit_code == 2
    assert check("--call", "table.py").exit_code == 0
    for name, said in (
        ("dies.py", "ended, with status 0"), ("later.py", "ended"), ("raises.py", "ZeroDivisionError"),
        ("forges.py", "NOT a bijection"),
    ):  # fmt: skip
        done = check("--call", name)
        assert (done.exit_code, said in done.stdout) == (1, True), done.stdout
    Path("kept.py").write_text("open('owned', 'w')\n" + RIGHT)
    assert check("kept.py").exit_code == 0
    assert not Path("owned").exists()
