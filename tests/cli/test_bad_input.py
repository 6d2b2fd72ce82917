"""Does every mistake get a sentence that says what to do, and exit status 2?"""

from dataclasses import replace
from pathlib import Path

import pytest

from swizzle_sim.cli.arguments import load_fitting
from xcd_model import gpu
from xcd_model.errors import ReplayError

MISUSE = [
    (("score", "gem", "--swizzle", "row"), "gemm"),
    (("score", "gemm", "--gpu", "mi300", "--swizzle", "row"), "mi300x"),
    (("score", "gemm", "--swizzle", "group_m(sze=3)"), "size"),
    (("score", "gemm", "m=4096", "--swizzle", "row"), "did you mean M"),
    (("score", "gemm", "M=4k", "--swizzle", "row"), "NAME=INTEGER"),
    (("score", "gemm", "M=1", "M=2", "--swizzle", "row"), "twice"),
    (("score", "gemm", "M=99999999999", "--swizzle", "row"), "at most"),
    (("check", ".", "--grid", "4"), "not a file"),
    (("score", "gemm", "--replay", "guess", "--swizzle", "row"), "lockstep"),
    (("check", "row", "--grid", "0x4"), "at least 1"),
    (("check", "row", "--grid", "a"), "64x64"),
    (("check", "row", "--grid", "99999x99999"), "31 bits"),
    (("check", "row"), "--grid"),
    (("check", "row", "--grid", "4", "--kernel", "gemm"), "either"),
    (("report", "nowhere"), "no run here"),
    (("score", "gemm", "--swizzle", ""), "--swizzle is empty: name a file, - or a family"),
    (("score", "gemm", "--swizzle", "mine/pid.txt"), "no such file"),
    (("score", "gemm", "--swizzle", "pid // 2"), "an expression alone on a line does nothing: assign pid"),
    (("score", "gemm", "--swizzle", "contigous + row"), "did you mean contiguous"),
    (("score", "gemm", "--swizzle", "pid = pid + 0 * " + "1" * 300), "<typed>:1"),
    (
        ("score", "gemm", "--gpu", "h200", "--swizzle", "row", "--no-compile"),
        "without --no-compile it is compiled for sm_90a",
    ),
    (("optimize", "gemm", "--model", "a/b"), "--model belongs to --proposer llm"),
    (("optimize", "gemm", "--timeout", "9", "--template", "row"), "--timeout belongs to --proposer llm"),
    (
        ("optimize", "gemm", "--template", "row", "--held-out", "M=512"),
        "--template, --held-out belong to --proposer search",
    ),
    (("optimize", "gemm", "--proposer", "llm", "--evaluations", "9"), "not to llm: add --proposer search"),
    (("optimize", "gemm", "--replay", "guess"), "guess: neither lockstep nor timed, nor a folder with a run"),
    (("bundle", "nofolder", "--top", "3"), "nofolder: no such run folder; of a kernel, name the candidates"),
    (("optimize", "gemm", "--resume", "nowhere"), "no run here"),
    (("optimise", "gemm"), "optimize"),
    (("score", "gemm", "--nope"), "swizzle-sim: No such option: --nope"),
    (("score", "gemm", "--seed", "x"), "options: swizzle-sim score --help\n"),
]
TEXTS = [
    ("pid = pid / 2", ["<stdin>:1:7", "use //", "^"]),
    ("pid = (pid", ["<stdin>:1:7", "never closed"]),
    ("x1 = pid\npid = qid", ["<stdin>:2:", "'qid'", "did you mean"]),
    ("", ["assign pid"]),
]


@pytest.mark.parametrize(
    ("words", "hint"), MISUSE, ids=lambda value: " ".join(value) if isinstance(value, tuple) else ""
)
def test_misuse_exits_2_with_a_hint(typed, words, hint):
    answer = typed(*words)
    assert answer.code == 2
    assert hint in answer.err
    assert answer.out == ""


@pytest.mark.parametrize(("text", "hints"), TEXTS, ids=[text[:20] for text, _ in TEXTS])
def test_a_text_outside_the_language_is_shown(typed, text, hints):
    answer = typed("check", "-", "--grid", "64x64", stdin=text)
    assert answer.code == 2
    for hint in hints:
        assert hint in answer.err


def test_errors_are_json_too(typed):
    answer = typed("score", "gemm", "--swizzle", "contigous", "--json")
    assert answer.code == 2 and set(answer.json["error"]) == {"code", "message"}
    assert answer.json["error"]["code"] == "unknown-name"


def test_a_sweep_in_which_nothing_is_scored_fails(typed):
    words = ("sweep", "gemm", "K=64", "--over", "M,N", "--values", "512,768", "--replay", "lockstep", "--swizzle")
    answer = typed(*words, "pid = pid // 2")
    assert answer.code == 1
    assert "nothing could be scored" in answer.err and "loses" not in answer.out
    assert typed(*words, "pid = pid // 2", "--json").code == 1
    assert typed(*words, "pid = pid // 2", "--swizzle", "row").code == 0


def test_a_folder_called_like_a_family_does_not_hide_it(typed, tmp_path):
    (tmp_path / "row").mkdir()
    assert typed("score", "gemm", "M=256", "N=256", "K=64", "--swizzle", "row").code == 0
    assert "not a file" in typed("score", "gemm", "--swizzle", "./row").err


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="a system without endless devices")
@pytest.mark.parametrize(
    ("ending", "words"),
    [
        ("swizzle", ("check",)),
        ("py", ("check",)),
        ("hip", ("check",)),
        ("json", ("import",)),
        ("toml", ("score", "gemm", "M=256", "N=256", "K=64", "--swizzle", "row", "--gpu")),
        ("swizzle", ("optimize", "gemm", "M=256", "N=256", "K=64", "--proposer", "search", "--template")),
    ],
)
def test_an_endless_file_is_read_up_to_a_limit(typed, tmp_path, ending, words):
    endless = tmp_path / f"endless.{ending}"
    endless.symlink_to("/dev/zero")
    answer = typed(*words, str(endless))
    assert answer.code == 2 and "over 16 MiB" in answer.err


@pytest.mark.parametrize(("kernel", "sizes"), [("softmax", []), ("gemm", ["BLOCK_M=128", "BLOCK_N=128"])])
def test_smaller_tiles_are_named_only_where_there_are_some(kernel, sizes):
    narrow = gpu("mi300x")
    narrow = replace(narrow, limits=replace(narrow.limits, threads_per_workgroup=64))
    with pytest.raises(ReplayError, match="no workgroup fits") as refused:
        load_fitting(kernel, sizes, narrow)
    assert "smaller tiles" not in str(refused.value)


def test_a_file_that_is_no_text_is_refused(typed, tmp_path):
    (tmp_path / "bytes.txt").write_bytes(b"\xff\xfe pid = pid")
    assert "not UTF-8" in typed("check", "bytes.txt", "--grid", "4").err
    (tmp_path / "bad.toml").write_text("xcds = 8\n")
    assert "bad.toml" in typed("score", "gemm", "--gpu", "bad.toml", "--swizzle", "row").err
