"""Is the page of the published kernels what the results say, and do the packages still give those results?

The opt-in part fetches the packages:
``KERNELS_TRIED=FOLDER pytest -m packages benchmarks/tests/capture/test_kernels_tried.py``.
"""

import json
import os
import shlex
import stat
import sys
from pathlib import Path

import pytest

from swizzle_benchmarks.evidence.kernels_tried import trying
from swizzle_benchmarks.evidence.kernels_tried.page import PAGE, RESULTS, page
from swizzle_benchmarks.evidence.kernels_tried.sources import HERE, KERNELS, SOURCES, sources_beside
from swizzle_benchmarks.evidence.kernels_tried.trying import Limits, try_kernel
from swizzle_sim.triton_source import read_source

LIMITS = Limits(seconds=20)
RESULT = json.loads(RESULTS.read_text(encoding="utf-8"))


def test_the_page_is_what_the_results_say():
    assert PAGE.read_text(encoding="utf-8") == page(RESULT)


def test_the_numbers_that_are_promised_hold():
    done = {step: [name for name, row in RESULT.items() if step in row and "refused" not in row[step]]
            for step in ("capture", "rewrite")}  # fmt: skip
    assert len(done["capture"]) >= 72 and len(done["rewrite"]) >= 70
    assert all("optimize" in row for row in RESULT.values()) and set(RESULT) == set(KERNELS)
    refused = [one["refused"] for row in RESULT.values() for one in row.values() if "refused" in one]
    assert all("\n" not in one and "/" not in one.partition(".py")[0] for one in refused), "a line, without folders"
    assert all(RESULT[name]["version"] == SOURCES[KERNELS[name]["source"]].version for name in RESULT)


def test_each_kernel_has_a_declaration():
    for name in KERNELS:
        module, _, variable = name.partition(":")
        assert variable in read_source(HERE / "declarations" / f"{module}.py").constants


@pytest.fixture
def fake(tmp_path, monkeypatch):
    """A command in place of ours, which does what the file ``does`` says."""
    command = tmp_path / "command"
    words = shlex.join([sys.executable, str(tmp_path / "does")])
    command.write_text(f'#!/bin/sh\nexec {words} "$@"\n')  # a path with blanks cannot follow #!
    command.chmod(command.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(trying.sys, "executable", str(command))
    return (tmp_path / "does").write_text


def rows(tmp_path, known, steps=("rewrite",), limits=LIMITS):
    stored = []
    try_kernel("liger:rope", tmp_path, limits, steps, known, lambda row: stored.append(json.loads(json.dumps(row))))
    return stored


@pytest.mark.parametrize(
    ("does", "limits", "refused"),
    [
        ("print('{\"error\": {\"message\": \"it says why\"}}'); raise SystemExit(2)", LIMITS, "it says why"),
        ("import sys; sys.exit('swizzle-sim: no document')", LIMITS, "swizzle-sim: no document"),
        ("import time; time.sleep(60)", Limits(seconds=0.3), "not done in 0.3 s"),
        ("b = bytearray(2 << 30)", Limits(seconds=20, gib=1), "MemoryError"),
    ],
)  # fmt: skip
def test_a_command_that_gives_nothing_is_a_refusal_of_one_line(tmp_path, fake, does, limits, refused):
    fake(does)
    (row,) = rows(tmp_path, {}, limits=limits)
    assert row["rewrite"]["refused"] == refused


def test_what_has_a_result_is_not_run_again_unless_the_version_changed(tmp_path, fake):
    fake("print('{\"workgroups\": 7}')")
    (row,) = rows(tmp_path, {}, ("capture",))
    assert row["capture"]["workgroups"] == 7
    fake("raise SystemExit('must not run')")
    assert rows(tmp_path, row, ("capture",)) == []
    assert "refused" in rows(tmp_path, {**row, "version": "0"}, ("capture",))[0]["capture"]


@pytest.mark.packages
@pytest.mark.parametrize("name", KERNELS)
def test_packages_give_the_results(name):
    if "KERNELS_TRIED" not in os.environ:
        pytest.skip("KERNELS_TRIED names no folder for the packages")
    root = Path(os.environ["KERNELS_TRIED"]).resolve()
    for source in sources_beside(name):
        source.fetch(root)
    row: dict = {}
    try_kernel(name, root, Limits(), ("capture", "rewrite"), {}, row.update)
    for step in ("capture", "rewrite"):
        assert ("refused" in row[step]) == ("refused" in RESULT[name][step]), row[step]
