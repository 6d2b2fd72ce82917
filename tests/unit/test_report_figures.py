"""Do the figures of the report lie where they should, and is what they draw what a plain reading gives?"""

from __future__ import annotations

import base64
import dataclasses
import html
import re
from xml.etree import ElementTree

import numpy as np
import pytest

from swizzle_agent.transcript import END, PROPOSE, STEP, Exchange, Transcript
from swizzle_benchmarks.suite.gemm import gemm
from swizzle_sim.language import Grid, Swizzle, family
from swizzle_sim.pricing.scores import Score
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.report import figures, png
from swizzle_sim.report.display.colours import family_of
from swizzle_sim.report.display.tiles import tile_map
from swizzle_sim.report.figures import best_so_far, give_titles, hit_rate_over_time, per_xcd, xcd_map
from swizzle_sim.report.page import BIN_FS, LONGEST_COLOURED, coloured
from swizzle_sim.report.pictures import NEVER, STEPS, inline_svg, replay_pair, slider_data
from swizzle_sim.report.spending import spending_of
from swizzle_sim.search.history import Attempt
from tests import naive
from xcd_model import Traffic, gpu, prepare
from xcd_model import replay_lockstep as replay
from xcd_model.analysis.schedule import misses_of_workgroups, sampled_touches, schedule_of
from xcd_model.replay.traffic import COLUMNS, READ_MISSES, READ_REQUESTS


@pytest.fixture(scope="module")
def scorer():
    """Two XCDs of three CUs, so that a grid of 20 tiles takes several waves."""
    mi300x = gpu("mi300x")
    l2 = dataclasses.replace(mi300x.l2, size_bytes=128 * 1024)
    device = dataclasses.replace(mi300x, xcds=2, cus_per_xcd=3, l2=l2)
    return Scorer(gemm(M=64, N=80, K=512, BLOCK_M=16, BLOCK_N=16, BLOCK_K=32), device, replay="lockstep")


def naive_schedule(trace, order, device, programs):
    """Turn of every instruction: {(workgroup, instruction): (xcd, turn)}."""
    workgroup = np.repeat(np.arange(trace.n_workgroups), np.diff(trace.start)).tolist()
    turns = naive.turns(trace, order, device, 1, programs)
    return {(workgroup[i], i): (xcd, turn) for turn, issued in enumerate(turns) for xcd, _, i in issued}


@pytest.mark.parametrize("programs", [None, 5])
@pytest.mark.parametrize("spec", ["identity", "contiguous+group_m(size=2)"])
def test_the_schedule_is_that_of_the_lockstep_replay(scorer, programs, spec):
    plan = prepare(scorer.plan.trace, scorer.gpu, programs=programs)
    order = scorer.permutation(Swizzle.parse(family(spec)))
    expected = naive_schedule(plan.trace, order.tolist(), scorer.gpu, programs)
    found = schedule_of(plan, order, workgroups_per_cu=1)
    assert len(expected) == plan.trace.n_instructions == len(set(found.sequence))
    for workgroup in range(order.size):
        mine = [place for (who, _), place in expected.items() if who == workgroup]
        turns = [turn for _, turn in mine]
        assert (found.begin[workgroup], found.end[workgroup]) == (min(turns), max(turns) + 1)
        assert {xcd for xcd, _ in mine} == {found.xcd[workgroup]}
    first = 0
    for xcd, last in enumerate(found.ends):
        issued = zip(found.owner[first:last].tolist(), found.sequence[first:last].tolist(), strict=True)
        places = [expected[one] for one in issued]
        assert places == sorted(places) and {x for x, _ in places} == {xcd}
        first = last


def test_misses_of_tiles_add_up_to_those_of_the_replay(scorer):
    """A large L2 loses nothing, so an associative one misses as a fully associative one does."""
    large = dataclasses.replace(scorer.gpu, l2=gpu("mi300x").l2)
    one = Scorer(scorer.kernel, large, replay="lockstep")
    for found in replay_pair(one, one.permutation(Swizzle.parse(family("column")))):
        traffic = replay(one.plan, found.order, workgroups_per_cu=one.occupancy)
        assert found.misses.sum() == traffic.l2_misses
        assert found.schedule.turns == traffic.turns


def test_a_sample_of_lines_stands_for_all(scorer):
    schedule = schedule_of(scorer.plan, np.arange(20), workgroups_per_cu=1)
    whole, part = (sampled_touches(scorer.plan, schedule, most) for most in (1 << 20, 1 << 12))
    assert (whole.one_in, part.one_in) == (1, 4)
    all_of_them = misses_of_workgroups(scorer.plan, schedule, whole).sum()
    assert misses_of_workgroups(scorer.plan, schedule, part).sum() == pytest.approx(all_of_them, rel=0.1)


def test_the_slider_knows_when_each_tile_runs(scorer):
    grid = scorer.kernel.grid
    schedule = schedule_of(scorer.plan, np.arange(20), workgroups_per_cu=1)
    data = slider_data(grid, (schedule, schedule))
    begin, end = (np.frombuffer(base64.b64decode(data["maps"][0][key]), np.uint8) for key in ("begin", "end"))
    assert (data["rows"], data["columns"]) == grid.tiles and begin.size == 20
    assert begin[0] == 0 and end[-1] == STEPS == data["steps"] and (begin < end).all()
    assert begin.tolist() == [STEPS * t // schedule.turns for t in schedule.begin]
    ribbon = slider_data(Grid((70,)), (dataclasses.replace(schedule, begin=np.zeros(70, int), end=np.ones(70, int)),))
    cells = np.frombuffer(base64.b64decode(ribbon["maps"][0]["begin"]), np.uint8)
    assert cells.size == 128 and (cells[70:] == NEVER).all() and (cells[:70] == 0).all()


def test_a_figure_within_a_page_has_no_styles_and_the_page_s_colours(scorer):
    hostile = Attempt(
        number=1, name="$x_{", source="", proposer="llm:</text><script>$x_{\u202e", verdict={}, score=scorer.baseline
    )
    text, again = (
        inline_svg(best_so_far([hostile], scorer.baseline), "here", {"#0072b2": "var(--after)"}) for _ in range(2)
    )
    assert text.startswith('<svg viewBox="0 0 ') and "style" not in text and "<script" not in text
    assert 'stroke="var(--after)"' in text and "#0072b2" not in text and text == again
    assert 'id="here-plot-0"' in text and all(one.startswith("here-") for one in re.findall(r'\bid="([^"]*)', text))


def test_what_models_cost_is_told_by_attempt(tmp_path):
    assert not spending_of(tmp_path).asks and not (tmp_path / "transcript.sqlite").exists()
    asks = [(0, "memory-analysis", 0, 0, None, 0.5), (0, PROPOSE, 0, 0, "timeout", 0.0), (0, PROPOSE, 0, 1, None, 0.25)]
    texts = {"model": "a/b", "seed": 0, "version": "", "request": "", "digest": "", "at": "", "finish": None}
    with Transcript(tmp_path) as transcript:
        for iteration, purpose, candidate, ask, code, dollars in asks:
            reply, tokens = ("", (1000, 20)) if code is None else (None, (None, None))
            counted = dict(zip(("input_tokens", "output_tokens"), tokens, strict=True))
            how = {"reply": reply, "code": code, "error": code, "dollars": dollars, "latency_ms": 1500.0}
            transcript.add(Exchange(iteration, purpose, candidate, ask, **texts, **how, **counted))
        transcript.note(STEP, 0, {"iteration": 0, "outcomes": [{"attempt": 7, "code": "scored"}]})
        transcript.note(END, 0, {"reason": "iterations: 1"})
    found = spending_of(tmp_path)
    assert found.of(7) == "1,000 tokens in, 20 out, $0.2500" and found.of(1) == ""
    assert found.sentences() == [
        "3 questions to a/b (1 without a usable answer): 2,000 tokens in, 40 out, $0.7500, 4.5 s of waiting.",
        "The run ended by iterations: 1.",
    ]
    (tmp_path / "transcript.sqlite").write_bytes(b"no database")
    assert "cannot be read" in spending_of(tmp_path).sentences()[0]


@pytest.mark.parametrize(
    ("grid", "expected"),
    [
        (Grid((6,), (2, 3)), [[0, 1, 0], [1, 0, 1]]),
        (Grid((2, 3)), [[0, 0, 0], [1, 1, 1]]),  # x, which is pid_m, is counted fastest
        (Grid((5,)), [[0, 1, 0, 1, 0]]),
        (Grid((70,)), [[x % 2 for x in range(64)], [x % 2 for x in range(6)] + [-1] * 58]),
    ],
)
def test_tile_map_lies_as_the_tiles_do(grid, expected):
    ids = np.arange(grid.num_pids)
    assert tile_map(grid, ids % 2, ids).tolist() == expected
    # under a swizzle: hardware id 0, on XCD 0, computes tile 2
    assert tile_map(Grid((4,), (2, 2)), np.arange(4), np.array([2, 3, 0, 1])).tolist() == [[2, 3], [0, 1]]


def test_bins_keep_the_hit_rate():
    draw = np.random.default_rng(0)
    timeline = np.zeros((1003, 8, len(COLUMNS)), np.int64)
    timeline[..., READ_REQUESTS] = draw.integers(1, 100, (1003, 8))
    timeline[..., READ_MISSES] = draw.integers(0, timeline[..., READ_REQUESTS] + 1)
    traffic = Traffic(timeline=timeline, turns_per_bin=2, turns=2005, fetch_bytes=128, write_request_bytes=64)
    edges, rate, running = hit_rate_over_time(traffic)
    assert rate.size == running.size == edges.size - 1 <= 200
    assert edges[0] == 0 and edges[-1] == 2005
    requests = np.add.reduceat(timeline[..., READ_REQUESTS].sum(1), edges[:-1] // 2)
    assert np.average(rate, weights=requests) == pytest.approx(traffic.l2_hit_rate)


def test_a_short_timed_kernel_has_bins_enough(tmp_path):
    one = Scorer(gemm(M=512, N=512, K=128, BLOCK_M=64, BLOCK_N=64), gpu("mi300x"), replay="timed")
    one.bin_fs = BIN_FS
    found = one.traffic(np.arange(one.kernel.grid.num_pids))
    assert found.time_fs < 100e9  # with bins of 1 us there were fewer than a hundred
    assert 100 <= hit_rate_over_time(found)[1].size <= 400


def test_families_come_from_specs_only():
    assert family_of("contiguous+group_m(size=8)") == "contiguous+group_m"
    assert family_of("<b>$x_{") == family_of("two words!") == "other"


def test_pictures_of_odd_shapes(scorer):
    for shape in ((1, 300), (3, 3), (700, 2)):
        xcd = np.arange(shape[0] * shape[1]).reshape(shape) % 8
        assert png(xcd_map(xcd, xcd, title="$odd_{"))
    idle = Score.from_dict(scorer.baseline.as_dict() | {"per_xcd_l2_hit_rate": [0.5, None]})
    assert png(per_xcd(idle, scorer.baseline))


# ---- Do dots and bars say what they are, and is code coloured, without a text becoming markup?
HOSTILE = "</title><script>alert(1)</script>\u202e"


def picture(count, *, rasterized=False, titles=None):
    figure = figures.figure_of(3)
    axes = figure.subplots()
    (dots,) = axes.plot(np.arange(count), np.arange(count) ** 2, "o", rasterized=rasterized)
    give_titles(dots, titles or [f"{at}: {HOSTILE}" for at in range(count)])
    bars = axes.bar([1, 2], [3, 4])
    for at, bar in enumerate(bars):
        give_titles(bar, [f"bar {at}"])
    return inline_svg(figure, "p", {})


def said(svg):
    tree = ElementTree.fromstring(svg)
    name = "{http://www.w3.org/2000/svg}" if "xmlns=" in svg else ""
    return [one.text for one in tree.iter(f"{name}title")]


def test_each_dot_and_bar_has_its_title_and_no_title_is_markup():
    found = said(picture(5))
    dots = [one for one in found if not one.startswith("bar")]
    assert [one.split(":")[0] for one in dots] == list("01234") and set(found) - set(dots) == {"bar 0", "bar 1"}
    assert all("<script>" in one and "\\u{202e}" in one for one in dots)
    assert "<script" not in picture(5)


def test_dots_that_are_an_image_or_miscounted_have_no_title():
    assert set(said(picture(5, rasterized=True))) == {"bar 0", "bar 1"}
    assert set(said(picture(5, titles=["one", "two"]))) == {"bar 0", "bar 1"}


@pytest.mark.parametrize("language", ["python", "cpp"])
@pytest.mark.parametrize(
    "text",
    [
        "pid = pid // 8  # <b>\nif x:\n    pid = 'a'\n",
        HOSTILE,
        "int f(int a) { return a / 2; } // \x1b[2J",
        "",
        "\n\n a\r\nb",
    ],
)
def test_coloured_code_is_the_text(text, language):
    from swizzle_sim.base.text import visible

    shown = str(coloured(text, language))
    assert html.unescape(re.sub(r"</?span[^<>]*>", "", shown)) == visible(text)
    assert set(re.findall(r"<[^>]*>", shown)) <= {"</span>", *(f'<span class="{one}">' for one in "kcsmf")}


def test_keywords_numbers_and_comments_have_their_colour_and_long_texts_none():
    shown = str(coloured("def f(a):\n    return a // 8  # note", "python"))
    for style, piece in (("k", "def"), ("f", "f"), ("m", "8"), ("c", "# note")):
        assert f'<span class="{style}">{piece}</span>' in shown
    assert "<span" not in str(coloured("def " * LONGEST_COLOURED, "python"))
