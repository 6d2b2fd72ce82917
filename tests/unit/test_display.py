"""Do notebooks show the nouns as tables, and hostile texts as text?"""

import struct
import sys

import pytest

import swizzle_sim as sim
from swizzle_sim.report.display.notebook import (
    TABLES,
    Table,
    html,
    of_gpu,
    of_kernel,
    of_run,
    of_score,
    of_swizzle,
    of_verdict,
    register,
    text,
)
from xcd_model import NotBijective, SizeError

HOSTILE = "<script>alert('x')</script>"


@pytest.fixture(scope="module")
def scorer():
    return sim.Scorer(
        sim.kernel("gemm", M=512, N=512, K=128, BLOCK_M=64, BLOCK_N=64), sim.gpu("mi300x"), replay="lockstep"
    )


def swizzle(spec, name=None):
    return sim.Swizzle.parse(sim.family(spec), name=name)


class Formatter:
    def __init__(self):
        self.printers = {}

    def for_type_by_name(self, module, name, printer):
        self.printers[module, name] = printer


class Shell:
    def __init__(self):
        self.display_formatter = self
        self.formatters = {"text/html": Formatter(), "text/plain": Formatter()}


def test_every_noun_is_registered_where_it_lives(scorer):
    shell = Shell()
    register(shell)
    nouns = [scorer.baseline, scorer.verify(swizzle("row")), swizzle("row"), scorer.kernel, scorer.gpu]
    for noun in nouns:
        key = (type(noun).__module__, type(noun).__name__)
        assert key in shell.formatters["text/html"].printers and key in shell.formatters["text/plain"].printers
        assert "<" in shell.formatters["text/html"].printers[key](noun)
    assert {name for _, name in TABLES} == {"Score", "Verdict", "Swizzle", "Kernel", "Gpu", "Run"}


def test_import_in_a_notebook_registers_and_elsewhere_does_not(monkeypatch):
    import importlib
    import types

    shell = Shell()
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))
    importlib.reload(sim)
    assert shell.formatters["text/html"].printers
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: None))
    importlib.reload(sim)


def test_tables_hold_what_the_nouns_say(scorer):
    score = scorer.score(swizzle("contiguous+group_m(size=2)"))
    assert f"{100 * score.l2_hit_rate:.1f} %" in text(of_score(score))
    assert "simulated" in of_score(score).caption
    wrong = sim.Swizzle.parse("pid = 0")
    assert dict(of_verdict(scorer.verify(wrong)).rows)["bijection at this grid"] == "NO"
    assert "pid 1 and pid 0" in text(of_verdict(scorer.verify(wrong)))
    assert dict(of_kernel(scorer.kernel).rows)["grid"] == str(scorer.kernel.grid)
    assert "documented" in text(of_gpu(scorer.gpu))
    changed = sim.what_if(scorer.gpu, {"l2.size_bytes": 8 * 2**20})
    assert ("l2.size_bytes", "8 MiB", "changed", "no source: this GPU does not exist") in of_gpu(changed).rows


def test_a_run_shows_its_best_and_the_launch_order(scorer, tmp_path):
    from swizzle_sim.search.candidates import family_candidates

    few = family_candidates(scorer.kernel, scorer.gpu, ["contiguous+group_m(size=2)"])
    run = sim.optimize(scorer.kernel, scorer.gpu, tmp_path / "run", candidates=few, replay="lockstep")
    names = [row[0] for row in of_run(run).rows]
    assert sorted(names) == ["contiguous+group_m(size=2)", "launch order"]


def test_hostile_texts_are_shown_as_text():
    shown = html(of_swizzle(swizzle("row", name=HOSTILE)))
    shown += html(Table(HOSTILE, [(HOSTILE, HOSTILE)], (HOSTILE, HOSTILE), HOSTILE))
    assert "<script" not in shown and shown.count("&lt;script") == 7
    assert "pid" in html(Table("", code="pid")) and text(Table("only a caption")) == "only a caption"


def test_maps_are_drawn_with_their_names_and_refuse_what_is_no_map(scorer):
    picture = sim.show_map(scorer.kernel, scorer.gpu, swizzle("contiguous", "runs $x$"), swizzle("row"))
    data, metadata = picture._repr_png_()
    width, height = struct.unpack(">II", data[16:24])
    assert data.startswith(b"\x89PNG") and width > height and 0 < metadata["width"] < width
    assert [axes.get_title() for axes in picture.figure.axes] == ["launch order", "runs $x$", "swizzle 2"]
    assert picture.data == sim.show_map(
        scorer.kernel, scorer.gpu, swizzle("contiguous", "runs $x$"), swizzle("row")
    ).data  # fmt: skip
    with pytest.raises(SizeError, match="0 maps"):
        sim.show_map(scorer.kernel, scorer.gpu, launched=False)
    with pytest.raises(SizeError, match="5 maps"):
        sim.show_map(scorer.kernel, scorer.gpu, *[swizzle("row")] * 4)
    with pytest.raises(NotBijective):
        sim.show_map(scorer.kernel, scorer.gpu, sim.Swizzle.parse("pid = 0"))
