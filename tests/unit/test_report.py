"""Is the report of a run whole, safe to open, and the same each time?"""

from __future__ import annotations

import re
from html.parser import HTMLParser

import numpy as np
import pytest

from benchmarks.suite.gemm import gemm
from swizzle_sim.history import Attempt, History
from swizzle_sim.report import write_report
from swizzle_sim.report.colours import family_of
from swizzle_sim.report.draw import tile_map
from swizzle_sim.report.figures import hit_rate_over_time, per_xcd, png, xcd_map
from swizzle_sim.report.write import write_whole
from swizzle_sim.scoring import Score, Scorer
from swizzle_sim.search import about_run
from swizzle_sim.swizzle import Grid, Swizzle, family
from xcd_model import gpu
from xcd_model.errors import RunError
from xcd_model.traffic import COLUMNS, READ_MISSES, READ_REQUESTS, Traffic

SIZES = {"M": 2048, "N": 1024, "K": 320, "BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64}
HOSTILE = "# <script>alert(1)</script> </pre><img src=x onerror=alert(2)>\n"
PICTURES = ("map.png", "progress.png", "over_time.png", "per_xcd.png")


@pytest.fixture(scope="module")
def scorer():
    return Scorer(gemm(**SIZES), gpu("mi300x"))


@pytest.fixture
def start(tmp_path, scorer):
    """Make a run folder; gives an empty history."""

    return lambda name="run": History.create(tmp_path / name, told(scorer))


def told(scorer):
    return about_run(scorer, "swizzle-sim optimize gemm <b>")


def attempt(scorer, number, name, source, scored=True):
    swizzle = Swizzle.parse(source)
    verdict = scorer.verify(swizzle)
    score = scorer.score(swizzle) if verdict.bijective and scored else None
    why = verdict.counterexample.message if verdict.counterexample else "" if score else "the same as an earlier one"
    return Attempt(
        number=number,
        name=name,
        source=source,
        proposer="test",
        verdict=verdict.as_dict(),
        score=score,
        critique=why,
    )


def fill(history, scorer):
    history.append(attempt(scorer, 0, "identity", family("identity")))
    history.append(attempt(scorer, 1, "<script>alert(3)</script> $x_{", HOSTILE + family("contiguous")))
    history.append(attempt(scorer, 2, "row", family("row"), scored=False))
    history.append(attempt(scorer, 3, "half", "pid = pid // 2\n"))
    history.append(attempt(scorer, 4, "best\u202e", HOSTILE + family("contiguous+group_m(size=4)")))
    history.set_state("finished")
    return history


@pytest.fixture(scope="module")
def finished(tmp_path_factory, scorer):
    """Give a finished run with its report; for reading only."""
    folder = tmp_path_factory.mktemp("runs") / "run"
    history = fill(History.create(folder, told(scorer)), scorer)
    write_report(history)
    return history


class Tags(HTMLParser):
    """Collect tags with their attributes."""

    def __init__(self, text):
        super().__init__()
        self.seen = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))


def pixels(path):
    from matplotlib.image import imread

    return imread(path)


def page_of(history):
    return (history.folder / "report.html").read_text(encoding="utf-8")


def test_a_finished_run_has_every_file(finished):
    history, page = finished, finished.folder / "report.html"
    names = {path.name for path in history.folder.iterdir()} - {"history.sqlite"}
    assert names == {"report.html", *PICTURES, "best.txt", "best_triton.py", "best.hip"}
    assert page.stat().st_size < 3_000_000
    best = max((a for a in history if a.score), key=lambda a: a.score.l2_hit_rate)
    assert (history.folder / "best.txt").read_text() == best.source
    assert "@triton.jit" in (history.folder / "best_triton.py").read_text()
    assert "__device__" in (history.folder / "best.hip").read_text()
    compile((history.folder / "best_triton.py").read_text(), "best_triton.py", "exec")


def test_pictures_are_not_blank(finished):
    for name in PICTURES:
        shown = pixels(finished.folder / name)
        assert min(shown.shape[:2]) > 400
        assert shown[..., :3].std() > 0.03


def test_the_page_loads_and_runs_nothing(finished):
    text = page_of(finished)
    tags = Tags(text).seen
    assert {tag for tag, _ in tags}.isdisjoint({"script", "link", "iframe", "object", "embed", "base", "form"})
    for _, attributes in tags:
        assert not [key for key in attributes if key.startswith("on") or key in ("href", "srcset", "action")]
        assert attributes.get("src", "data:image/png;base64,").startswith("data:image/png;base64,")
    assert not re.search(r"url\(|@import", text)
    assert sum(tag == "img" for tag, _ in tags) == len(PICTURES)


def test_hostile_text_is_shown_as_text(finished):
    text = page_of(finished)
    assert "<script" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert "&lt;script&gt;alert(3)&lt;/script&gt;" in text
    assert "optimize gemm &lt;b&gt;" in text
    assert "\u202e" not in text and "best\\u{202e}" in text


def test_the_page_counts_and_explains_refusals(finished):
    text = page_of(finished)
    assert "5 in all: 3 scored, 1 refused, 1 the same" in text
    assert "attempt 3, <code>half</code>" in text
    assert "both compute" in text
    assert "simulated, lockstep replay" in text


def test_many_refusals_are_cut_to_twenty(start, scorer):
    history = start()
    for number in range(30):
        history.append(attempt(scorer, number, f"half{number}", "pid = pid // 2\n"))
    text = write_report(history).read_text(encoding="utf-8")
    assert "first 20 of 30" in text and "half19" in text and "half20" not in text
    assert "None of the 30 attempts has a score" in text


def test_a_run_without_attempts_gives_a_clear_page(start):
    history = start()
    text = write_report(history).read_text(encoding="utf-8")
    assert "No attempt is stored" in text
    assert "it was killed" in text
    assert {path.name for path in history.folder.iterdir()} == {"history.sqlite", "report.html"}


def test_an_interrupted_run_with_the_baseline_alone(start, scorer):
    history = start()
    history.append(attempt(scorer, 0, "identity", family("identity")))
    history.set_state("interrupted")
    text = write_report(history).read_text(encoding="utf-8")
    assert "This run is interrupted" in text
    assert "Nothing tried so far beats the order as launched" in text


def test_the_same_run_gives_the_same_bytes(start, scorer, finished):
    again = fill(start(), scorer)
    write_report(again)
    for name in ("report.html", *PICTURES, "best.txt", "best_triton.py", "best.hip"):
        assert (again.folder / name).read_bytes() == (finished.folder / name).read_bytes(), name


def test_a_run_whose_counts_changed_says_so(start, scorer):
    history = start()
    first = attempt(scorer, 0, "identity", family("identity"))
    other = Score.from_dict(first.score.as_dict() | {"l2_hit_rate": 0.5})
    history.append(Attempt(**{**vars(first), "score": other}))
    assert "come out differently now" in write_report(history).read_text(encoding="utf-8")


def test_a_failed_write_leaves_the_old_file(tmp_path):
    target = tmp_path / "there"
    target.mkdir()
    (target / "kept").write_text("old")
    with pytest.raises(RunError, match="cannot be written"):
        write_whole(target, b"new")
    assert [path.name for path in tmp_path.iterdir()] == ["there"]


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


def test_tile_map_follows_the_swizzle():
    # hardware id 0, on XCD 0, computes tile 2
    assert tile_map(Grid((4,), (2, 2)), np.arange(4), np.array([2, 3, 0, 1])).tolist() == [[2, 3], [0, 1]]


def test_bins_keep_the_hit_rate():
    draw = np.random.default_rng(0)
    timeline = np.zeros((1003, 8, len(COLUMNS)), np.int64)
    timeline[..., READ_REQUESTS] = draw.integers(1, 100, (1003, 8))
    timeline[..., READ_MISSES] = draw.integers(0, timeline[..., READ_REQUESTS] + 1)
    traffic = Traffic(timeline=timeline, turns_per_bin=2, turns=2005, line_bytes=128, write_request_bytes=64)
    edges, rate, running = hit_rate_over_time(traffic)
    assert rate.size == running.size == edges.size - 1 <= 200
    assert edges[0] == 0 and edges[-1] == 2005
    requests = np.add.reduceat(timeline[..., READ_REQUESTS].sum(1), edges[:-1] // 2)
    assert np.average(rate, weights=requests) == pytest.approx(traffic.l2_hit_rate)


def test_families_come_from_specs_only():
    assert family_of("contiguous+group_m(size=8)") == "contiguous+group_m"
    assert family_of("<b>$x_{") == family_of("two words!") == "other"


def test_pictures_of_odd_shapes(scorer):
    for shape in ((1, 300), (3, 3), (700, 2)):
        xcd = np.arange(shape[0] * shape[1]).reshape(shape) % 8
        assert png(xcd_map(xcd, xcd, title="$odd_{"))
    idle = Score.from_dict(scorer.baseline.as_dict() | {"per_xcd_l2_hit_rate": [0.5] + [None] * 7})
    assert png(per_xcd(idle, scorer.baseline))
