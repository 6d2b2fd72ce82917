"""Does the page show what the library says of a state, whatever was shown before?"""

from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from swizzle_sim.explore import evaluate as evaluating
from swizzle_sim.explore import show
from swizzle_sim.explore.evaluate import Evaluator, Problem, Result, cards, small_map
from swizzle_sim.explore.show import COLUMNS, cells, changes, verdict_words
from swizzle_sim.explore.state import State
from swizzle_sim.language import FAMILIES
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.report.display.colours import XCDS, xcd_colour
from swizzle_sim.report.display.tiles import map_png
from xcd_model import assigned_misses

SMALL = State(
    sizes=(("M", 1024), ("N", 1024), ("K", 256), ("BLOCK_M", 128), ("BLOCK_N", 128), ("BLOCK_K", 64)), swizzle="column"
)
TILES = 8  # of each side


@pytest.fixture(scope="module")
def evaluator():
    return Evaluator(compile=False)


def test_score_bound_and_verdict_are_the_librarys(evaluator):
    evaluator.evaluate(replace(SMALL, changes=(("l2.size_bytes", 2 << 20),)))  # what is kept must not show
    changes = ((), (("l2.size_bytes", 1 << 20), ("l2.ways", 8)), (("xcds", 4),))
    for state in (*(replace(SMALL, changes=changed) for changed in changes), replace(SMALL, replay="timed")):
        result = evaluator.evaluate(state)
        scorer = Scorer(state.load_kernel(), state.load_gpu(), replay=state.replay)
        swizzle = state.load_swizzle()
        assert result.problem is None and result.too_large == ""
        assert result.baseline.as_dict() == scorer.baseline.as_dict()
        assert result.score.as_dict() == scorer.score(swizzle).as_dict()
        assert result.verdict == scorer.verify(swizzle)
        order = scorer.permutation(swizzle)
        misses = assigned_misses(scorer.kernel.build_trace(128), order, scorer.gpu).sum()
        assert result.assigned_bound == pytest.approx(1 - misses / scorer.bound.l2_requests)


def test_a_kernel_is_scored_with_the_resources_of_its_compile_for_the_gpu_asked_for(monkeypatch):
    asked = []

    def compiled(kernel, device):
        asked.append(device.arch)
        return replace(kernel, resources=replace(kernel.resources, source="compiled"))

    monkeypatch.setattr(evaluating, "compiled_for", compiled)
    scored, kept = Evaluator(), Evaluator(compile=False)
    state = replace(SMALL, gpu="mi300x")
    one, other = scored.evaluate(state), kept.evaluate(state)
    assert asked == ["gfx942"] and scored._scorer(state).kernel.resources.source == "compiled"
    assert one.baseline == other.baseline  # of the same resources
    scored.evaluate(replace(state, swizzle="row"))
    assert asked == ["gfx942"]  # once a kernel


def test_maps_are_of_the_hardwares_round_robin(evaluator):
    before, after = np.empty((TILES, TILES), int), np.empty((TILES, TILES), int)
    for pid in range(TILES * TILES):
        before[pid // TILES, pid % TILES] = pid % 8
        after[pid % TILES, pid // TILES] = pid % 8  # column by column
    result = evaluator.evaluate(SMALL)
    np.testing.assert_array_equal(result.before, before)
    np.testing.assert_array_equal(result.after, after)
    assert not result.ribbon and result.num_xcds == 8


def test_what_is_no_bijection_has_a_map_with_holes_and_no_score(evaluator):
    result = evaluator.evaluate(replace(SMALL, swizzle="pid = pid // 2 * 2"))
    assert not result.verdict.bijective and result.score is None and result.assigned_bound is None
    assert result.baseline is not None
    assert (result.after[:, 1::2] == -1).all() and (result.after[:, ::2] >= 0).all()
    stopped = evaluator.evaluate(replace(SMALL, swizzle="pid = pid // (pid - pid)"))
    assert stopped.after is None and stopped.verdict.counterexample.code == "division-by-zero"


@pytest.mark.parametrize(
    ("swizzle", "code"),
    [
        ("", "result"),
        ("pid = <script>alert(1)</script>", "syntax"),
        ("pid = nowhere", "name"),
        ("grupo_m", "unknown-name"),
        ("pid = pid" + " + 1" * 3000, "limit"),
    ],
)
def test_an_error_of_the_text_leaves_the_order_as_launched(evaluator, swizzle, code):
    result = evaluator.evaluate(replace(SMALL, swizzle=swizzle))
    assert result.problem.code == code and result.verdict is None
    assert result.baseline is not None and result.before is not None and result.score is None


def test_errors_of_size_and_gpu_leave_nothing(evaluator):
    huge = evaluator.evaluate(replace(SMALL, sizes=(("M", 2**30), ("N", 2**30))))
    assert huge.problem.code == "size" and huge.before is None and huge.baseline is None
    broken = evaluator.evaluate(replace(SMALL, changes=(("l2.ways", 5),)))
    assert broken.problem.code == "gpu-spec"
    assert evaluator.evaluate(replace(SMALL, gpu="h300")).problem.code == "unknown-name"


def test_what_takes_long_is_replayed_only_when_it_is_asked_for(evaluator, monkeypatch):
    for limit, words in (("MAX_INSTRUCTIONS", "tensor instructions"), ("MAX_LOOKUPS", "look-ups")):
        with monkeypatch.context() as patch:
            patch.setattr(evaluating, limit, 10)
            result = evaluator.evaluate(SMALL)
            assert words in result.too_large and result.baseline is None
            assert result.verdict.bijective and result.after is not None
            assert evaluator.evaluate(SMALL, anyway=True).score is not None


def test_families_that_fit_a_grid(evaluator):
    assert {"identity", "contiguous", "hilbert"} <= set(evaluator.evaluate(SMALL).fits)
    assert "morton_3d" not in evaluator.evaluate(SMALL).fits
    flat = evaluator.evaluate(State(kernel="softmax", sizes=(("M", 100), ("N", 256)), swizzle="contiguous"))
    assert flat.ribbon and {"contiguous", "chunked"} <= set(flat.fits)
    assert not {"contiguous_naive", "hilbert"} & set(flat.fits)  # 100 is no multiple of 8, and has one axis


# ---- Do figures stand as they should, and does text stay text?
@pytest.fixture(scope="module")
def result():
    sizes = (("M", 1024), ("N", 1024), ("K", 256), ("BLOCK_M", 128), ("BLOCK_N", 128))
    return Evaluator(compile=False).evaluate(State(sizes=sizes, swizzle="group_m(size=2)"))


def test_pictures_have_the_colours_of_the_xcds():
    xcd = np.array([[0, 3, 8], [-1, 17, 1]])
    image = np.asarray(Image.open(io.BytesIO(map_png(xcd, 18))).convert("RGBA"))
    assert image.shape == (2, 3, 4)
    for (row, column), x in np.ndenumerate(xcd):
        red, green, blue, alpha = image[row, column]
        assert alpha == (0 if x < 0 else 255)
        if x >= 0:
            assert f"#{red:02x}{green:02x}{blue:02x}" == xcd_colour(x)
    assert len({xcd_colour(x) for x in range(24)}) == 24
    assert tuple(xcd_colour(x) for x in range(8)) == XCDS


def test_the_gallery_has_every_family_with_its_map():
    found = cards()
    assert list(found) == list(FAMILIES)
    assert {Image.open(io.BytesIO(png)).size for png in found.values()} == {(16, 16)}
    assert (small_map("column") == np.arange(16)[:, None] % 8).all()
    assert (small_map("contiguous") == np.arange(16)[:, None] // 2).all()


def test_figures_are_those_of_the_scores(result):
    before, after = result.baseline, result.score
    assert len(cells(before)) == len(changes(before, after)) == len(COLUMNS)
    assert cells(after)[0] == f"{100 * after.l2_hit_rate:.1f} %"
    points = round(100 * (after.l2_hit_rate - before.l2_hit_rate), 1)
    text, tone = changes(before, after)[0]
    assert (text == f"{points:+.1f} pt".replace("-", "−") or (points == 0 and text == "no change")) and tone == np.sign(
        points
    )
    assert set(cells(None)) == {"–"} and {text for text, _ in changes(before, None)} == {"–"}


def test_a_map_says_what_it_shows(result):
    text = str(show.maps(result))
    assert "data-rows='8'" in text and "8 × 8 tiles" in text
    assert "data-rows" not in str(show.maps(Result(state=State())))


def test_hidden_characters_of_a_message_are_spelt_out_and_long_ones_cut():
    _, _, (line,) = verdict_words(
        Result(state=State(), problem=Problem(code="syntax", message="a\u202eb\x1b" + "x" * 9999))
    )
    assert line.startswith("a\\u{202e}b\\u{1b}x") and len(line) < 1300
