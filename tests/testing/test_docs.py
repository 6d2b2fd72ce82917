"""Is what docs/ci.md shows what happens?"""

import runpy
import sys

import pytest

from swizzle_sim.testing import BijectionError, assert_bijective
from tests.docs.typed import ROOT, blocks

PAGE = list(blocks((ROOT / "docs" / "ci.md").read_text(encoding="utf-8")))
NAMED = {block.title: "".join(f"{line}\n" for line in block.lines) for block in PAGE if block.title}


@pytest.fixture
def scene(tmp_path, monkeypatch):
    for name in ("remap.py", "test_remap.py", "gemm.py"):
        (tmp_path / name).write_text(NAMED[name])
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def test_the_test_shown_passes_and_fails_as_shown(scene):
    shown = runpy.run_path("test_remap.py")
    shown["test_exact"]()
    with pytest.raises(BijectionError) as failed:
        shown["test_naive"]()
    assert f"{failed.value}\n" == NAMED["naive"]
    del sys.modules["remap"]


def test_the_other_python_block_runs(scene):
    remap = runpy.run_path("remap.py")
    (piece,) = ["\n".join(block.lines) for block in PAGE if block.language == "python" and not block.title]
    exec(piece, {**remap, "assert_bijective": assert_bijective})
