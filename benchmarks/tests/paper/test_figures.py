"""Do the figures say what was worked out, what was measured and what was printed, and nothing else?"""

import itertools
import json
import re
from pathlib import Path

import numpy as np
import pytest

from swizzle_benchmarks.evidence.paper import figure_2, figure_5, figure_14, figure_15, figure_16, style
from swizzle_benchmarks.evidence.paper.__main__ import OUT, main
from swizzle_benchmarks.evidence.paper.figures import PARTS
from swizzle_benchmarks.evidence.paper.formulas import FORMULAS
from swizzle_benchmarks.evidence.paper.jobs import run_jobs
from swizzle_benchmarks.evidence.paper.page import document, page, rounded, wrapped
from swizzle_benchmarks.evidence.paper.published import ARMS, MODELS, PRINTED, SWEPT
from swizzle_benchmarks.evidence.paper.recorded import FOLDER, recorded_runs
from swizzle_benchmarks.evidence.paper.scored_suite import PAPER
from swizzle_benchmarks.evidence.paper.settings import SMALL, Settings
from swizzle_benchmarks.evidence.paper.work import REPLAY, counted_kernel
from swizzle_benchmarks.evidence.recording import repeat_recording, write_recording
from swizzle_benchmarks.suite.gemm_streamk import schedule
from swizzle_sim.language import Swizzle, family
from swizzle_sim.language.verdict import EVERY_GRID_TRIED
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.search.history import Attempt, History
from swizzle_sim.search.loop import about_run
from swizzle_sim.workload.kernels import kernel
from xcd_model import gpu
from xcd_model.errors import RunError

MI300X = gpu("mi300x")
RUN = "spmv-aware"
ORDER = {
    "kernel": "spmv",
    "order": "chunk",
    "measured_pct": 37.3,
    "simulated_pct": 34.6,
    "low_pct": 37.0,
    "high_pct": 38.0,
}


@pytest.fixture(autouse=True)
def caches(tmp_path_factory, monkeypatch):
    """One cache for all tests here, not the user's."""
    folder = tmp_path_factory.getbasetemp() / "caches"
    monkeypatch.setenv("SWIZZLE_SIM_PAPER_CACHE", str(folder / "paper"))
    monkeypatch.setenv("SWIZZLE_SIM_FIDELITY_CACHE", str(folder / "fidelity"))


@pytest.fixture
def made(tmp_path):
    """Make some parts; gives the numbers and the page."""

    def make(*names):
        words = [word for name in names for word in ("--only", name)]
        out = tmp_path / "out"
        assert main([*words, "--quick", "--processes", "1", "--out", str(out), "--studies", str(tmp_path)]) == 0
        assert all((out / file).read_bytes()[:4] == b"\x89PNG" for name in names for file in PARTS[name].pictures)
        return [json.loads((out / f"{name}.json").read_text()) for name in names], (out / "index.md").read_text()

    return make


def record(folder, source, score, context="aware", state="finished"):
    """A run as a study leaves it: a proposal with a score, and one that could not be read."""
    work = kernel("spmv", **SMALL["spmv"])
    scorer = Scorer(work, MI300X, replay="lockstep")
    settings = {"settings": {"context": context, "models": ["openai/gpt-4o"]}}
    with History.create(folder, about_run(scorer) | settings) as history:
        rows = [
            ("identity", family("identity"), "baseline", scorer.baseline),
            ("theirs", source, "llm:openai/gpt-4o", score),
        ]
        rows += [("broken", "no formula", "llm:openai/gpt-4o", None), ("beside", source, "families", score)]
        for number, (name, text, proposer, found) in enumerate(rows):
            history.append(
                Attempt(number=number, name=name, source=text, proposer=proposer, verdict={"code": "x"}, score=found)
            )
        history.set_state(state)
    return scorer


def test_without_a_recording_no_model_has_a_number(made):
    (two, sixteen, fourteen), text = made("figure-2", "figure-16", "figure-14")
    assert [row["kernel"] for row in two["kernels"]] == list(PAPER)
    assert all(row["models"] == dict.fromkeys(ARMS) for row in two["kernels"])
    assert all(row["models"] == dict.fromkeys(MODELS) for row in sixteen["kernels"])
    assert not any(row["models"] for row in fourteen["kernels"])
    assert style.NO_RUN in text and "0 of its 2 proposals" in text and style.QUICK in text
    for row in two["kernels"]:
        best = {arm: row[arm]["score"]["l2_hit_rate"] for arm in ("families", "search")}
        assert row["launched"]["l2_hit_rate"] <= min(best.values())
        assert max(best.values()) <= row["launched"]["bound_l2_hit_rate"]
    assert "Not made yet: `python -m swizzle_benchmarks.evidence.paper --only figure-15`" in text


@pytest.mark.parametrize("name", PAPER)
def test_the_page_says_what_the_model_gives_today(name):
    """Where it does not, `make paper` writes it anew."""
    (row,) = (row for row in json.loads((OUT / "figure-2.json").read_text())["kernels"] if row["kernel"] == name)
    launched = Scorer(counted_kernel(row), MI300X, replay=REPLAY).baseline
    assert rounded({"l2_hit_rate": launched.l2_hit_rate, "time_us": launched.time_us}) == {
        key: row["launched"][key] for key in ("l2_hit_rate", "time_us")
    }


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.json")), ids=lambda path: path.stem)
def test_a_recording_is_repeated_byte_for_byte(path, tmp_path):
    """Prompts are built anew and must be those that were answered; where they changed, the study is to be repeated."""
    assert json.dumps(repeat_recording(path, tmp_path), indent=1, sort_keys=True) + "\n" == path.read_text()


def test_a_recorded_run_is_drawn_and_scored_again(tmp_path, monkeypatch):
    source = family("contiguous")
    score = Scorer(kernel("spmv", **SMALL["spmv"]), MI300X, replay=REPLAY).score(Swizzle.parse(source))
    for name, text, found in ((RUN, source, score), ("spmv-model-other", family("identity"), None)):
        record(tmp_path / "runs" / name, text, found)
        write_recording(tmp_path / "runs" / name, tmp_path)
    settings = Settings(quick=True, studies=tmp_path, processes=1)
    monkeypatch.setattr(figure_2, "PAPER", ("spmv", "softmax"))
    monkeypatch.setattr(figure_2.counted, "same_orders", lambda names, settings: [ORDER])
    data = figure_2.gather(settings, run_jobs(figure_2.jobs(settings), processes=1))
    models = {row["kernel"]: row["models"] for row in data["kernels"]}
    assert models["softmax"] == dict.fromkeys(ARMS)
    found = models["spmv"]["aware"]
    assert models["spmv"] == dict.fromkeys(ARMS) | {"aware": found}
    assert found["run"] == RUN and found["proposals"] == 2
    assert found["score"]["l2_hit_rate"] == score.l2_hit_rate
    labels = figure_2.bars(data).axes[0].get_legend_handles_labels()[1]
    assert "LLM, aware, recorded; simulated" in labels and not any("unaware" in label for label in labels)
    text = figure_2.words(data)
    assert f"run `{RUN}`" in text and "1 of 6 pairs" in text
    assert recorded_runs(tmp_path)[0].rates == [score.l2_hit_rate, None]


def test_what_is_no_recording_is_refused(tmp_path):
    assert recorded_runs(tmp_path) == [] and recorded_runs(tmp_path / "nowhere") == []
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(RunError, match="not a recording"):
        recorded_runs(tmp_path)


def test_the_example_of_the_paper_is_the_papers():
    """Four XCDs, 4 x 5 tiles: round robin in row-major order, then a row an XCD."""
    data = figure_5.gather(Settings(quick=True), _five())
    before, after = (np.array(one["xcd"]) for one in data["rows"][0]["maps"])
    assert before.tolist() == [[0, 1, 2, 3, 0], [1, 2, 3, 0, 1], [2, 3, 0, 1, 2], [3, 0, 1, 2, 3]]
    assert after.tolist() == [[row] * 5 for row in range(4)]
    for one in (m for row in data["rows"] for m in row["maps"]):
        tiles = np.array(one["xcd"])
        panels = []
        for xcd in set(tiles.ravel()) - {-1}:
            mine = [(m, n) for m, n in itertools.product(*map(range, tiles.shape)) if tiles[m, n] == xcd]
            panels.append(len({m for m, _ in mine}) + len({n for _, n in mine}))
        assert one["panels_per_xcd"] == pytest.approx(sum(panels) / len(panels))
    assert data["by_ceiling_domain"] == "num_pids % num_xcds == 0" and data["contiguous_domain"] == EVERY_GRID_TRIED


def _five():
    """Results as the jobs give them, with made-up scores: the maps do not depend on them."""
    score = {"l2_hit_rate": 0.5, "speedup": 1.0}
    arm = {"name": "contiguous", "source": family("contiguous"), "score": score}
    arms = {"launched": score, "families": arm, "search": arm, "replay": REPLAY}
    texts = {"texts": {"contiguous": {"score": score}}}
    names = ("gemm", "gemm_streamk")
    return {f"search of {n}": arms for n in names} | {f"contiguous {n}": texts for n in names}


def test_the_map_of_stream_k_is_that_of_its_schedule():
    work = kernel("gemm_streamk", M=1536, N=1024, K=256, GROUP_M=4, PROGRAMS=10)
    whole = schedule(6 * 4, 4, 10)[0][:2]
    expected = np.full((6, 4), -1)
    for piece in whole:
        for program, tile in enumerate(piece.tile):
            group, within = divmod(int(tile), 4 * 4)
            high = min(6 - 4 * group, 4)
            expected[4 * group + within % high, within // high] = program
    assert figure_5._streamk_tiles(work, np.arange(10)).tolist() == expected.tolist()


def test_best_so_far_and_what_it_took():
    rates = [0.2, None, 0.5, 0.4, 0.5]
    assert figure_14.best_so_far(0.3, rates) == [0.3, 0.3, 0.3, 0.5, 0.5, 0.5]
    assert figure_14.needed(0.3, rates) == 3 and figure_14.needed(0.3, [0.45, 0.5], part=0.5) == 1
    assert figure_14.needed(0.6, rates) is None and figure_14.best_so_far(0.6, []) == [0.6]


def test_sizes_where_a_swizzle_hurts_are_named():
    sizes = [label for _, label in figure_15._sizes("gemm", quick=True)]
    launched = {"l2_hit_rate": 0.5, "bound_l2_hit_rate": 0.9}
    rates = {"contiguous": (0.5, 0.4), "contiguous+group_m(size=4)": (0.6, 0.4999), "group_m(size=8)": (0.45, 0.6)}
    rows = [
        {"launched": launched, "error": "", "swizzles": {name: {"l2_hit_rate": r[i]} for name, r in rates.items()}}
        for i in range(2)
    ]
    data = figure_15._kernel("gemm", True, {"rows": rows, "replay": "timed"})
    assert [(one["swizzle"], one["size"], round(one["points"], 6)) for one in data["hurts"]] == [
        ("contiguous", sizes[1], 10.0),
        ("group_m(size=8)", sizes[0], 5.0),
    ]
    text = figure_15.words({"kernels": [data], "quick": False})
    assert f"GEMM, `contiguous`: {sizes[1]} (-10.0)" in text and f"GEMM, `group_m(size=8)`: {sizes[0]} (-5.0)" in text
    assert "| GEMM | `contiguous+group_m(size=4)` | 0 of 2 sizes | - | 1 of 2 sizes | +10.0 |" in text


def test_every_swept_order_is_a_bijection_at_every_size():
    for name, specs in figure_15.SWIZZLES.items():
        for problem, _ in figure_15._sizes(name, quick=False):
            work = kernel(name, **problem)
            for spec in specs:
                order = Swizzle.parse(family(spec)).permutation(work.grid, MI300X.xcds, work.problem)
                assert np.array_equal(np.sort(order), np.arange(work.grid.num_pids))


def test_printed_formulas_are_judged_at_the_size_they_were_measured_at():
    for name, said in PRINTED.items():
        found = figure_2._printed(name)
        formula = next((one for one in FORMULAS if one.label == said.formula), None)
        if formula is None:
            assert name == "gemm_streamk" and found["bijective"] is None
            continue
        assert formula.kernel == name and f"{said.gain:g}%" in found["words"]
        stated = int(re.match(r"(\d+) tiles|(\d+) rows", formula.computes)[0].split()[0])
        assert (found["bijective"], found["tiles_computed"]) == (False, stated)
    assert figure_2._printed("spmv") is None
    assert set(SWEPT) == {"layer_norm", "smith_waterman", "stencil_2d", "gemm"}


def test_replies_are_read_as_the_language_reads_them(tmp_path):
    path = tmp_path / "replies.json"
    texts = [
        json.dumps({"swizzle": "pid = num_pids - 1 - pid"}),
        json.dumps({"swizzle": "Agerad-30"}),
        '{"swizzle": "pid',
    ]
    replies = [{"purpose": "memory-analysis", "text": "{}"}, *({"purpose": "propose", "text": text} for text in texts)]
    path.write_text(json.dumps({"model": "a model", "replies": replies}))
    assert figure_16.replies(path) == {"model": "a model", "proposals": 3, "readable": 1}
    assert figure_16.replies(tmp_path / "none.json") is None


def test_the_page_that_is_there_follows_from_the_numbers_that_are_there():
    """After a change of words run `python -m swizzle_benchmarks.evidence.paper` again: all it needs is kept."""
    assert (OUT / "index.md").read_text(encoding="utf-8") == page(OUT)
    for name, part in PARTS.items():
        assert json.loads((OUT / f"{name}.json").read_text())["quick"] is False
        assert all((OUT / file).stat().st_size > 10_000 for file in part.pictures)


def test_pictures_and_page_can_be_made_again_from_the_numbers(made, tmp_path, capsys):
    (audit, sweeps), text = made("audit", "figure-15")
    assert [row["kernel"] for row in sweeps["kernels"]] == list(SWEPT)
    assert [row["label"] for row in audit["rows"] if row["bijective"]] == ["11"]
    assert "**7 of the 8 printed formulas are no bijections**" in text and "Sizes where a swizzle hurts" in text
    out = tmp_path / "out"
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    (out / "index.md").unlink()
    (out / "figure-15.png").unlink()
    assert main(["--redraw", "--only", "figure-15", "--out", str(out)]) == 0
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before
    assert main(["--redraw", "--out", str(out)]) == 1
    assert "figure-2.json: no numbers to draw from" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--only", "figure-3", "--out", "x"], "no figure is called 'figure-3'"),
        (["--quick"], "name another --out"),
        (["--only", "audit", "--quick", "--processes", "1", "--out", "file/out"], "cannot be written"),
    ],
)
def test_bad_words_are_refused(words, said, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("no folder")
    assert main(words) == 1
    assert said in capsys.readouterr().err


def test_numbers_are_rounded_and_paragraphs_wrapped():
    assert rounded({"a": [1 / 3, 7, "x", None, (0.5,)]}) == {"a": [0.333333, 7, "x", None, [0.5]]}
    assert max(map(len, wrapped("word " * 100).splitlines())) <= 120
    data = {"a": [[1, -2], [0.5, None]], "b": ["x", 1], "c": [], "d": [{"e": 1e-7}]}
    assert json.loads(document(data)) == data and "[1, -2]" in document(data) and "[0.5, null]" in document(data)
    assert wrapped("| a | b |\n| - | - |") == "| a | b |\n| - | - |"
    assert wrapped("- " + "word " * 40).splitlines()[1].startswith("  word")
