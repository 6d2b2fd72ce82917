"""Is the report of a run whole, safe to open, and the same each time?"""

from __future__ import annotations

import ast
import base64
import hashlib
import json
import re
import struct
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import swizzle_sim as sim
from swizzle_benchmarks.suite.gemm import gemm
from swizzle_sim.hardware.node.manifest import identity
from swizzle_sim.hardware.results import BUNDLES, MEASUREMENTS, keep
from swizzle_sim.language import Swizzle, family
from swizzle_sim.pricing.scores import Score
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.report import write_report
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
from swizzle_sim.report.page import best_sources
from swizzle_sim.search.history import Attempt, History
from swizzle_sim.search.loop import about_run
from swizzle_sim.workload.price import RemapPrice
from tests.machines import COMPILED
from xcd_model import NotBijective, SizeError, gpu

PRICE = RemapPrice(
    before=COMPILED,
    after=replace(COMPILED, registers=128),
    emission="folded",
    offer={"waves_per_eu": 2},
    offered=replace(COMPILED, registers=120),
)
SIZES = {"M": 2048, "N": 1024, "K": 320, "BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64}
HOSTILE = "# <script>alert(1)</script> </pre><img src=x onerror=alert(2)>\n"
PICTURES = ("map.png", "progress.png", "over_time.png", "per_xcd.png")


@pytest.fixture(scope="module")
def scorer():
    return Scorer(gemm(**SIZES), gpu("mi300x"), replay="lockstep")


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
    about = {"proposer": "test", "verdict": verdict.as_dict(), "score": score, "critique": why}
    return Attempt(number=number, name=name, source=source, **about)


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


def page_of(history):
    return (history.folder / "report.html").read_text(encoding="utf-8")


def test_in_clusters_the_hip_file_counts_clusters_and_else_workgroups(finished):
    best = next(one for one in finished if one.score)
    about = dict(finished.about)
    assert "linear id, x fastest: blockIdx.x on a one-dimensional launch" in best_sources(best, about)["best.hip"]
    clustered = best_sources(best, {**about, "cluster": 4})["best.hip"]
    assert "cluster's linear id, x fastest: blockIdx.x / 4 on" in clustered and "blockIdx.x on" not in clustered


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
    from matplotlib.image import imread

    for name in PICTURES:
        shown = imread(finished.folder / name)
        assert min(shown.shape[:2]) > 400
        assert shown[..., :3].std() > 0.03


def test_the_page_loads_nothing_and_runs_its_own_script_alone(finished):
    text = page_of(finished)
    tags = Tags(text).seen
    assert {tag for tag, _ in tags}.isdisjoint({"link", "iframe", "object", "embed", "base", "form"})
    scripts = [attributes for tag, attributes in tags if tag == "script"]
    assert scripts == [{"type": "application/json", "id": "schedule"}, {}]
    for _, attributes in tags:
        assert not [key for key in attributes if key.startswith("on") or key in ("style", "srcset", "action")]
        assert attributes.get("href", "#").startswith(("#", "data:image/png;base64,"))
        assert "src" not in attributes
    assert not re.search(r"url\((?!#)|@import", text)
    named = [attributes["id"] for _, attributes in tags if "id" in attributes]
    assert len(named) == len(set(named))
    drawn = [attributes for tag, attributes in tags if tag == "figure" and attributes.get("role") == "img"]
    assert len(drawn) == 6 and all(len(one["aria-label"]) > 30 for one in drawn)


def test_the_policy_names_the_page_s_own_texts(finished):
    text = page_of(finished)
    policy = next(a["content"] for tag, a in Tags(text).seen if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'; img-src data:;") and "unsafe" not in policy
    for tag, kind in (("style", "style-src"), ("script", "script-src")):
        (inline,) = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.S)
        digest = base64.b64encode(hashlib.sha256(inline.encode()).digest()).decode()
        assert f"{kind} 'sha256-{digest}'" in policy


NASTY = (
    "</text></svg><script>alert(1)</script><svg onload=alert(2)>",
    "</pre></style></title><img src=x onerror=alert(3)><a href='javascript:alert(4)'>",
    "]]><!-- --!> &lt;script&gt; &#60;script&#62; {{ 7 * 7 }} {% for x in y %} ${alert(5)}",
    '""" + __import__("os").system("true") + """ */ int main() { // \\',
    "\u202egnihtemos\u202c \u2066isolated\u2069 \u200bzero \x1b]0;owned\x07 \x85 \u2028 \ufeff",
    "$\\frac{1}{0}$ $x_{ %s %n \\N{BELL} \r\n# next line",
)
HARMFUL = {c for c in map(chr, range(0x3000)) if not c.isprintable()} - {"\n", "\t"}


@pytest.mark.usefixtures("sketched")
def test_a_hostile_best_candidate_adds_no_element_no_code_and_no_direction(start, scorer):
    pages, kernels = [], []
    for name in ("plain", " ".join(NASTY)):
        history = start(str(len(pages)))
        comment = "".join(f"# {line}\n" for line in re.split(r"[\r\n]+", name))
        best = attempt(scorer, 1, name, comment + family("contiguous+group_m(size=4)"))
        said = {"proposer": name, "critique": name, "verdict": {**best.verdict, "code": name, "domain": name}}
        history.append(attempt(scorer, 0, "identity", family("identity")), replace(best, **said))
        history.set_state("finished")
        write_report(history)
        pages.append(page_of(history))
        kernels.append((history.folder / "best_triton.py").read_text(encoding="utf-8"))
        hip = (history.folder / "best.hip").read_text(encoding="utf-8")
        assert not HARMFUL & set(pages[-1] + kernels[-1] + hip) and "main" not in kernels[-1] + hip
    seen = [[(tag, sorted(of)) for tag, of in Tags(page).seen if tag != "span"] for page in pages]
    assert seen[0] == seen[1] and "{{ 7 * 7 }}" in pages[1]
    assert "<script>alert" not in pages[1] and "&lt;script&gt;alert(1)" in pages[1]
    assert ast.dump(ast.parse(kernels[0])) == ast.dump(ast.parse(kernels[1]))


def test_every_attempt_is_listed_with_its_verdict_and_critique_and_the_best_as_a_diff(finished):
    text = page_of(finished)
    assert "5 in all: 3 scored, 1 refused, 1 without" in text
    assert re.search(r"<b>3</b><code>half</code>\s*<span class=\"mark\">refused", text)
    assert "both compute" in text and "the same as an earlier one" in text
    assert "simulated, lockstep replay" in text
    assert '<span class="added">+    pid = swizzle(' in text and '<span class="taken">-' in text  # of the kernel
    assert "The text only" in text and "gemm_triton_swizzled.py, whole" in text


@pytest.mark.usefixtures("sketched")
def test_of_many_attempts_the_best_and_the_first_are_listed(start, scorer):
    history = start()
    half, first = attempt(scorer, 1, "half", "pid = pid // 2\n"), attempt(scorer, 0, "identity", family("identity"))
    best = attempt(scorer, 399, "last and best", family("contiguous+group_m(size=4)"))
    many = [replace(half, number=n, name=f"half{n}") for n in range(1, 399)]
    history.append(first, *many, best)
    text = write_report(history).read_text(encoding="utf-8")
    assert "300 of 400, the best among them" in text
    assert "half298<" in text and "half299<" not in text and text.count("last and best") > 1


def test_a_run_without_attempts_gives_a_clear_page(start):
    history = start()
    text = write_report(history).read_text(encoding="utf-8")
    assert "No attempt is stored" in text
    assert "This run is stopped" in text
    assert {path.name for path in history.folder.iterdir()} == {"history.sqlite", "report.html"}


NOTHING_BETTER = ("No candidate so far beats the launch order", "None: the best is the launch order")


@pytest.mark.usefixtures("sketched")
@pytest.mark.parametrize(
    ("source", "changed", "state", "says"),
    [
        ("pid = pid // 2\n", {}, "finished", ["None of the 1 attempts has a score"]),
        (family("identity"), {}, "interrupted", ["This run is interrupted", *NOTHING_BETTER]),
        (family("identity"), {"l2_hit_rate": 0.5}, "finished", ["An older version made this run", "Make it anew"]),
    ],
)
def test_a_run_with_one_attempt_says_what_it_lacks(start, scorer, source, changed, state, says):
    history, only = start(), attempt(scorer, 0, "identity", source)
    history.append(replace(only, score=only.score and Score.from_dict(only.score.as_dict() | changed)))
    history.set_state(state)
    text = write_report(history).read_text(encoding="utf-8")
    assert all(one in text for one in says) and ("<script>" in text) == (only.score is not None)


def test_the_same_run_gives_the_same_bytes(start, scorer, finished):
    again = fill(start(), scorer)
    write_report(again)
    for name in ("report.html", *PICTURES, "best.txt", "best_triton.py", "best.hip"):
        one, other = (
            (run.folder / name).read_bytes().replace(str(run.folder).encode(), b"RUN") for run in (again, finished)
        )
        assert one == other, name  # commands to paste name the folder


@pytest.mark.parametrize(("number", "chars"), [(470, 80), (50, 20_000)])
def test_pages_of_long_runs_are_small(tmp_path, monkeypatch, scorer, number, chars):
    """All families, and fifty attempts of a model that writes and is told much."""
    monkeypatch.setattr("swizzle_sim.report.pictures.files", lambda *given: {})
    history = History.create(tmp_path / "run", told(scorer))
    first = attempt(scorer, 0, "identity", family("identity"))
    best = attempt(scorer, number, "best", family("contiguous+group_m(size=4)"))
    draw = np.random.default_rng(0)
    long = [first]
    for n in range(1, number):
        text = draw.bytes(chars // 2).hex()
        told_of = {"name": "<&>" * 50, "proposer": "llm:<&>", "source": f"# {text}\n{first.source}", "critique": text}
        long.append(replace(first, number=n, **told_of))
    history.append(*long, best)
    assert 100_000 < write_report(history).stat().st_size < 3_000_000


def test_a_run_is_ranked_by_its_own_objective(tmp_path, scorer):
    """A search for less time shows the fastest first, though another has the better hit rate."""
    about = told(scorer) | {"objectives": ["time"]}
    history = History.create(tmp_path / "run", about)
    fast, near = family("row"), family("contiguous+group_m(size=4)")
    base = attempt(scorer, 0, "identity", family("identity"))
    given = base.score.as_dict()
    history.append(base)
    for number, (name, source, rate, speedup) in enumerate([("near", near, 0.9, 1.1), ("fast", fast, 0.6, 1.5)], 1):
        figures = {"l2_hit_rate": rate, "time_us": given["time_us"] / speedup, "speedup": speedup}
        score = replace(Score.from_dict(given | figures), price=PRICE if name == "fast" else None)
        history.append(replace(attempt(scorer, number, name, source), score=score))
    text = write_report(history).read_text(encoding="utf-8")
    assert "118 -&gt; 128 registers, 2 -&gt; 2 workgroups a CU; written as: folded" in text
    assert "Compiled for gfx942 with Triton 3.9.0" in text and "with waves_per_eu=2" in text
    assert "Ranked by predicted time. Orders within 2 % of each other are ties" in text
    assert (history.folder / "best.txt").read_text() == fast
    assert text.index("<code>fast</code>") < text.index("<code>near</code>")
    assert "predicted time [µs]" in text


@pytest.mark.usefixtures("sketched")
def test_an_unstable_ranking_is_said(start, scorer):
    history = fill(start(), scorer)
    pairs = [
        {"better": "<b>one", "worse": "two", "low": -0.001, "high": 0.002, "apart": False},
        {"better": "<b>one", "worse": "three", "low": 0.01, "high": 0.01, "apart": True},
    ]
    stored = {"draws": 8, "constants": ["l2.ways"], "of": "l2_hit_rate", "pairs": pairs}
    (history.folder / "uncertainty.json").write_text(json.dumps(stored))
    text = write_report(history).read_text(encoding="utf-8")
    said = "&lt;b&gt;one ties with: two (-0.10 to +0.20 points)"
    assert said in text and "always beats: three (+1.00 points)" in text
    (history.folder / "uncertainty.json").write_text("[")
    assert "distinguishable" not in write_report(history).read_text(encoding="utf-8")


@pytest.mark.usefixtures("sketched")
def test_two_objectives_show_their_front(tmp_path, scorer):
    about = told(scorer) | {"objectives": ["hbm_bytes", "energy"], "search": {"sizes": [{"M": 1024}]}}
    history = History.create(tmp_path / "run", about)
    first = attempt(scorer, 0, "identity", family("identity"))
    history.append(replace(first, verdict={**first.verdict, "costs": [0.0, 0.0]}))
    for number, costs in enumerate(([-1.0, 2.0], [2.0, -1.0], [1.0, 1.0]), 1):
        one = attempt(scorer, number, f"costs {costs}", family(f"group_m(size={2**number})"))
        history.append(replace(one, verdict={**one.verdict, "costs": costs}))
    text = write_report(history).read_text(encoding="utf-8")
    assert "Objectives: HBM bytes and energy, the mean gain over 2 problem sizes." in text
    assert (history.folder / "best.txt").read_text() == family("group_m(size=2)")
    assert "<td>1, front</td>" in text and "Energy [J]" in text


@pytest.mark.usefixtures("sketched")
def test_a_file_that_was_checked_and_written_is_shown_as_it_is(start, scorer):
    history = fill(start(), scorer)
    (history.folder / "gemm_triton_swizzled.py").write_text("pid = <written>\n")
    text = write_report(history).read_text(encoding="utf-8")
    assert "+pid = &lt;written&gt;" in text and "The text only" not in text


@pytest.mark.usefixtures("sketched")
def test_measurements_stored_with_a_run_are_shown(start, scorer):
    history = fill(start(), scorer)
    one = {"vendor": "amd", "name": "mi300x", "arch": "gfx942", "title": "MI300X", "xcds": 8}
    same = {"format": 1, "kernel": "gemm", "problem": SIZES, "source_sha256": "0", "gpu": one}
    orders = {"original": ("as launched", 40.25), "candidate_1": ("<i>other</i>", 30.5)}
    predicted = scorer.baseline.as_dict()
    told_of = [{"id": key, "name": name, "source": "", "predicted": predicted} for key, (name, _) in orders.items()]
    manifest = same | {"replay": "lockstep", "candidates": told_of}
    manifest["bundle"] = identity(manifest)
    found = {key: measured(name, time) for key, (name, time) in orders.items()}
    result = same | {"bundle": manifest["bundle"], "kind": "replayed", "machine": {}, "candidates": found}
    keep(history.folder / BUNDLES, manifest)
    keep(history.folder / MEASUREMENTS, result)
    text = write_report(history).read_text(encoding="utf-8")
    assert '<span class="kind">replayed</span>' in text and "nothing here was measured" in text
    assert '<td class="n">40.2</td>' in text and '<td class="n">30.5</td>' in text
    assert "&lt;i&gt;other&lt;/i&gt;" in text and "but for <a href" in text
    assert "time, cold: all orders equal in the prediction, over 2 of 2 orders" in text


def measured(name, time_us):
    """Entry of a result: equal outputs, and a cold time."""
    right = {"how": "bitwise"}
    quartiles = {"median": time_us, "lower_quartile": time_us, "upper_quartile": time_us}
    return {"name": name, "check_before": right, "check_after": right, "time_us": {"cold": quartiles}, "passes": []}


@pytest.mark.usefixtures("sketched")
def test_measurements_of_something_else_are_refused(start, scorer):
    data = Path(__file__).parents[1] / "hardware" / "data" / "h200" / "gemm"
    history = fill(start(), scorer)
    keep(history.folder / BUNDLES, json.loads((data / "manifest.json").read_text()))
    keep(history.folder / MEASUREMENTS, json.loads((data / "result.json").read_text()))
    text = write_report(history).read_text(encoding="utf-8")
    assert "cannot be compared with it: mi300x has 8 XCDs, the bundle is for 1" in text


# ---- Do notebooks show the nouns as tables, and hostile texts as text?
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
    nouns = [
        scorer.baseline,
        scorer.verify(swizzle("row")),
        swizzle("row"),
        scorer.kernel,
        scorer.gpu,
    ]
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
