"""Do numbers of a source become parameters with the grid that follows them, and is what cannot be derived named?"""

from pathlib import Path

import pytest

from swizzle_sim.capture.workload import workload
from swizzle_sim.tuning.compare import compare
from swizzle_sim.tuning.constants import parametrised
from swizzle_sim.tuning.template import Template
from tests.capture.same_trace import needs_triton
from xcd_model.errors import RewriteError

FILE = Path(__file__).with_name("numbers.py")


@pytest.fixture
def made(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return lambda path=FILE: parametrised(workload(str(path), {}))


def changed(tmp_path, *pairs):
    """The kernel's file with some text changed."""
    text = FILE.read_text()
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    path = tmp_path / "changed.py"
    path.write_text(text)
    return path


@needs_triton
def test_numbers_become_parameters_and_comments_stay(made):
    found = made()
    assert found.values == {"TILE": 64, "STEP": 32, "BLOCK": 256} and found.sides == (("M", "BLOCK"), ("N", "TILE"))
    new = found.text.decode()
    header = "K, TILE: tl.constexpr = 64, STEP: tl.constexpr = 32, BLOCK: tl.constexpr = 256):"
    assert header in new and "columns * BLOCK + tl.arange(0, BLOCK)  # rows of the tile" in new
    assert "STEP: tl.constexpr = 32  # of K" not in new and "      # of K\n" in new and "# which tile" in new
    before, after = (text.count("\n") for text in (FILE.read_text(), new))
    assert before == after


@needs_triton
def test_instances_of_other_numbers_compute_the_same(made):
    work, found = workload(str(FILE), {}), made()
    other = found.at(work, {"TILE": 32, "STEP": 64, "BLOCK": 64})
    assert other.grid.tiles == (8, 8) and other.at({"M": 70, "N": 33, "K": 64}).grid.tiles == (2, 2)
    assert len(compare(work, other, found.text).cases) > 3
    for grid, sizes in other.others:  # a square grid at its own sizes: these tell rows from columns
        m, n = (-(-{**work.problem, **sizes}[size] // block) for size, block in (("M", 64), ("N", 32)))
        assert grid.tiles == (m, n)
    with pytest.raises(RewriteError, match="computes otherwise"):
        compare(work, other, found.text.replace(b"depth < K", b"depth < K - 1"))


@needs_triton
def test_a_number_that_equals_a_named_one_is_the_same_parameter(made, tmp_path):
    columns = ("cols = pid % columns * TILE", "cols = pid % columns * 64 + 0 * 32")
    blocks = (("k + tl.arange(0, STEP)", "k + tl.arange(0, 32)"), ("tl.zeros((256, TILE)", "tl.zeros((256, 64)"))
    one = made(changed(tmp_path, columns, *blocks))
    assert sorted(one.values.values()) == [32, 64, 256] and b"columns * TILE + 0 * " in one.text


@needs_triton
def test_what_cannot_be_derived_is_named(made, tmp_path):
    with pytest.raises(RewriteError, match=r"changed.py:\d+: TILE is read here too, by a function"):
        made(changed(tmp_path, ("@triton.jit\ndef product", HELPER), ("pid // columns", "pid // wide(columns)")))
    with pytest.raises(RewriteError, match="side x of the grid, 6, counts blocks of no one size"):
        made(changed(tmp_path, ("triton.cdiv(s.M, 256)", "3 * triton.cdiv(s.M, 256)")))
    with pytest.raises(RewriteError, match="takes no number as the size of a block"):
        parametrised(workload("gemm", {}))


HELPER = """@triton.jit
def wide(columns):
    return columns * TILE // TILE


@triton.jit
def product"""


@needs_triton
def test_a_template_of_numbers_prunes_by_them(made, monkeypatch):
    from swizzle_sim.capture.user_kernel import load
    from xcd_model import gpu

    monkeypatch.setattr("swizzle_sim.tuning.template.compile_each", lambda *how: pytest.fail("compiled"))
    monkeypatch.setattr("swizzle_sim.tuning.template.has_compiler", lambda gpu: True)
    template = Template(load(str(FILE), {}, "gfx942"), gpu("mi300x"))
    assert template.constants == ["TILE", "STEP", "BLOCK"] and template.start["BLOCK"] == 256
    assert template.instance({**template.start, "TILE": 256, "num_warps": 1}).pruned == "registers"
    assert template.instance({**template.start, "TILE": 256, "STEP": 128}).pruned == "LDS"
